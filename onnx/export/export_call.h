#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/export/model_writer.h"

#include "core/graph/graph.h"

namespace plexaura::onnx {

// Thrown if the standard has no op that computes what a node does. The text says which node: "left_shift of int64".
class NoCounterpart : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One node of a graph, while it is exported: its op, the names of its inputs in the file, and its types. Functions that
// export an op add nodes to the file through it.
class ExportCall {
 public:
  using Integers = std::vector<std::int64_t>;
  using Names = std::vector<std::string>;

  // `names` are those of the values of earlier nodes in the file. `prefix` begins the names of the new nodes.
  ExportCall(const Graph& graph, const NodeRecord& record, const std::map<Value, std::string>& names,
             std::string prefix, ModelWriter& to);

  const Graph& graph() const { return graph_; }
  const NodeRecord& record() const { return record_; }
  std::string_view op() const { return record_.op->name(); }
  const Names& inputs() const { return inputs_; }
  const std::string& operator[](std::size_t i) const { return inputs_.at(i); }
  const std::string& name_of(Value value) const { return names_.at(value); }
  const TensorType& input_type(std::size_t i) const { return graph_.type(record_.inputs.at(i)); }
  const TensorType& type(std::size_t output = 0) const { return record_.types.at(output); }
  // Returns an output's dtype with another shape.
  TensorType with_shape(Shape shape) const { return {type().dtype, std::move(shape)}; }

  // Return the options of the op, or one of them. From integer() on they throw InternalError if there is none.
  const Description& options() const { return options_; }
  bool has_option(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name) const;
  bool flag(std::string_view name) const;
  double real(std::string_view name) const;
  std::string text(std::string_view name) const;
  Integers integers(std::string_view name) const;

  // Adds a node to the file, and returns the name of its only output. An output has the type of this node's output
  // unless another type is passed.
  std::string add(std::string_view op, Names inputs, Attributes attributes = {}) {
    return add(op, std::move(inputs), type(), std::move(attributes));
  }
  std::string add(std::string_view op, Names inputs, const TensorType& type, Attributes attributes = {});
  // Adds a node with any number of outputs.
  Names add_all(std::string_view op, Names inputs, const std::vector<TensorType>& types,
                Attributes attributes = {});

  // Return the names of constants of the file.
  std::string constant(const Tensor& value) { return to_.constant(value); }
  std::string integers(const Integers& values) {
    return to_.constant(Tensor::of({std::ssize(values)}, values));
  }
  // Return the name of a scalar of this dtype, by default that of the node's output.
  std::string number(double value, DType dtype) { return to_.constant(Tensor::scalar(value).cast(dtype)); }
  std::string number(double value) { return number(value, type().dtype); }
  // Returns the name of a constant [rank] with the extents of the shape.
  std::string shape(const Shape& shape) { return integers(shape.extents()); }

  [[noreturn]] void refuse(const std::string& what) const { throw NoCounterpart(what); }

 private:
  const Description::Value* find(std::string_view name) const;
  template <class T>
  const T& option(std::string_view name) const;

  const Graph& graph_;
  const NodeRecord& record_;
  Description options_;
  const std::map<Value, std::string>& names_;
  Names inputs_;
  std::string prefix_;
  ModelWriter& to_;
  int added_ = 0;
};

}  // namespace plexaura::onnx
