#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/format/proto.h"

#include "core/base/error.h"
#include "core/graph/graph.h"

namespace plexaura::onnx {

// Thrown if a builder needs to know a value that the graph only computes when it runs: a shape, for example.
class UnknownValue : public UserError {
 public:
  UnknownValue(std::string name, const std::string& text) : UserError(text), name_(std::move(name)) {}
  const std::string& name() const { return name_; }  // name of the value in the file

 private:
  std::string name_;
};

// Returns the value of a node that is a constant of its graph, or null.
const Tensor* known_value(const Node& node);

// Returns 0, 1, ... count - 1. Throws UserError for more than 2^24 numbers, since they are made when the graph is built.
Node counted(Graph& graph, std::int64_t count);

// Returns `value`, which was computed from x and another operand. Throws UserError if the value does not have the shape
// of x: the operands of some ops of the standard broadcast to x, but not x to them.
Node with_shape_of(const Node& x, const Node& value);

// Adds the nodes of a graph within a node, such as the body of a loop, for these inputs, and returns its outputs. `place`
// names the graph in errors.
using AddInner = std::function<std::vector<Node>(const GraphProto& inner, const std::vector<Node>& inputs,
                                                 const std::string& place)>;

// One node of a file, while it is added to a graph: its inputs as nodes of the graph, and its attributes. An
// attribute that the builder has not read is an error, since it would have no effect.
class Call {
 public:
  // An input that is left out is an empty Node. `folder` is that of the model.
  Call(Graph& graph, const NodeProto& proto, std::int64_t version, std::vector<Node> inputs,
       const std::filesystem::path& folder, const AddInner& add_inner)
      : graph_(graph),
        proto_(proto),
        version_(version),
        inputs_(std::move(inputs)),
        folder_(folder),
        add_inner_(add_inner) {}

  Graph& graph() const { return graph_; }
  const std::string& op() const { return proto_.op; }
  std::int64_t version() const { return version_; }  // version of the set of ops

  std::size_t inputs() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && !inputs_[i].is_empty(); }
  // Returns an input. Throws UserError if it is left out.
  Node operator[](std::size_t i) const;
  Node optional(std::size_t i) const { return has(i) ? inputs_[i] : Node(); }  // empty if it is left out
  // Return the value of an input that is known while the graph is built. Throw UnknownValue if it is not, and
  // UserError if it is left out.
  const Tensor& value(std::size_t i) const;
  std::vector<std::int64_t> input_integers(std::size_t i) const;
  // Returns the integers of an input as input_integers() does, but none if the input is left out.
  std::vector<std::int64_t> optional_integers(std::size_t i) const;
  double number(std::size_t i) const;  // number in an input with one element
  std::int64_t whole_number(std::size_t i) const;

  std::size_t outputs() const { return proto_.outputs.size(); }
  bool wants(std::size_t output) const { return output < outputs() && !proto_.outputs[output].empty(); }

  // Return an attribute, or `otherwise` if the node does not have it. Throw UserError if its value is of another kind.
  bool has_attribute(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  bool flag(std::string_view name, bool otherwise) { return integer(name, otherwise ? 1 : 0) != 0; }
  double real(std::string_view name, double otherwise);
  std::string text(std::string_view name, std::string_view otherwise);
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> otherwise = {});
  std::vector<float> reals(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  std::optional<Tensor> tensor(std::string_view name);
  // Returns a graph within the node. Throws UserError if the node does not have it.
  const GraphProto& inner(std::string_view name);
  std::vector<Node> add_inner(const GraphProto& inner, const std::vector<Node>& inputs,
                              const std::string& place) const {
    return add_inner_(inner, inputs, place);
  }
  // Marks an attribute that changes nothing here as read.
  void ignore(std::string_view name) { read_.emplace(name); }
  // Throw UserError if the node has the attribute with another value than this one, which is the standard's default.
  void require_default(std::string_view name, std::int64_t value);
  void require_default(std::string_view name, std::string_view value);

  // Throws UserError for an attribute that was not read.
  void check_all_read() const;

 private:
  const AttributeProto* find(std::string_view name, AttributeKind kind);

  Graph& graph_;
  const NodeProto& proto_;
  std::int64_t version_;
  std::vector<Node> inputs_;
  const std::filesystem::path& folder_;
  const AddInner& add_inner_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace plexaura::onnx
