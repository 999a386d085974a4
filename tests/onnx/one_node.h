#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "onnx/runner.h"

#include "core/base/error.h"
#include "tests/onnx/written_model.h"
#include "tests/support/backend.h"

namespace plexaura {

// A file with one node, for tests of one op. All inputs are passed when it runs, so that a program computes the node.
class OneNode {
 public:
  using Attributes = std::vector<std::pair<std::string, WrittenGraph::Attribute>>;

  OneNode(std::string op, std::int64_t version, Attributes attributes = {}, std::size_t outputs = 1)
      : op_(std::move(op)), version_(version), attributes_(std::move(attributes)), outputs_(outputs) {}

  // Computes the node. The node has no input at the places in `left_out`; `inputs` are those at the other places.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs,
                                 const std::vector<std::size_t>& left_out = {}) const {
    WrittenGraph graph;
    WrittenGraph::Names names;
    std::map<std::string, Tensor> feeds;
    for (const Tensor& input : inputs) {
      while (std::ranges::find(left_out, names.size()) != left_out.end()) names.emplace_back();
      names.push_back("i" + std::to_string(names.size()));
      graph.input(names.back(), input.shape().extents(), WrittenGraph::type_number(input.dtype()));
      feeds.emplace(names.back(), input);
    }
    WrittenGraph::Names results;
    for (std::size_t i = 0; i < outputs_; ++i) results.push_back("y" + std::to_string(i));
    graph.node(op_, names, results, attributes_);
    for (const std::string& result : results) graph.output(result);
    onnx::FileModel model(graph.model(version_), "one.onnx");
    ParameterStore store = model.make_store();
    onnx::Runner run(model, store, testing::test_backend());
    return run(feeds);
  }

  // Returns the text of the UserError that the node throws for these inputs; empty if there is none.
  std::string error(const std::vector<Tensor>& inputs, const std::vector<std::size_t>& left_out = {}) const {
    try {
      (*this)(inputs, left_out);
      return {};
    } catch (const UserError& error) {
      return error.what();
    }
  }

 private:
  std::string op_;
  std::int64_t version_ = 1;
  Attributes attributes_;
  std::size_t outputs_ = 1;
};

// Tensors of the usual types.
inline Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::of(std::move(shape), values);
}
inline Tensor bytes(Shape shape, const std::vector<std::uint8_t>& values) {
  return Tensor::of(std::move(shape), values);
}
inline Tensor integers(Shape shape, const std::vector<std::int64_t>& values) {
  return Tensor::of(std::move(shape), values);
}

}  // namespace plexaura
