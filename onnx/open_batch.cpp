#include "onnx/open_batch.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <map>
#include <set>

#include "onnx/format/proto.h"
#include "onnx/format/tensor_data.h"
#include "onnx/format/write_model.h"

#include "core/base/error.h"

namespace plexaura::onnx {

namespace {

[[noreturn]] void refuse(const std::string& node) {
  throw UserError(
      fmt::format("the node '{}' depends on the number of samples; export the model for a fixed "
                  "number",
                  node));
}

bool same_tensors(const TensorProto& a, const TensorProto& b) {
  return a.name == b.name && a.type == b.type && a.extents == b.extents && a.raw == b.raw;
}

bool same_attributes(const AttributeProto& a, const AttributeProto& b) {
  const bool same_tensor = a.tensor ? b.tensor && same_tensors(*a.tensor, *b.tensor) : !b.tensor;
  return same_tensor && a.name == b.name && a.type == b.type && a.real == b.real && a.integer == b.integer &&
         a.text == b.text && a.integers == b.integers;
}

class BatchOpener {
 public:
  BatchOpener(std::string_view one, std::string_view other)
      : model_(parse_model(one)), other_(parse_model(other).graph) {}

  std::string run() {
    GraphProto& graph = model_.graph;
    if (graph.nodes.size() != other_.nodes.size())
      refuse(graph.nodes.empty() ? std::string() : graph.nodes.back().name);
    find_shapes();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) open_node(graph.nodes[i], other_.nodes[i]);
    open_values(graph.inputs, other_.inputs);
    open_values(graph.outputs, other_.outputs);
    open_values(graph.inner_values, other_.inner_values);
    return write_model(model_);
  }

 private:
  // Finds the constants that are only shapes of Reshape.
  void find_shapes() {
    std::set<std::string> others;
    for (const NodeProto& node : model_.graph.nodes)
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        (node.op == "Reshape" && i == 1 ? shapes_ : others).insert(node.inputs[i]);
    for (const std::string& name : others) shapes_.erase(name);
  }

  void open_node(NodeProto& node, const NodeProto& other) {
    if (node.op != other.op || node.inputs != other.inputs || node.outputs != other.outputs ||
        node.attributes.size() != other.attributes.size())
      refuse(node.name);
    for (std::size_t i = 0; i < node.attributes.size(); ++i) {
      if (same_attributes(node.attributes[i], other.attributes[i])) continue;
      const bool is_shape = node.op == "Constant" && shapes_.contains(node.outputs[0]);
      if (!is_shape) refuse(reader_of(node));
      open_shape(node, *other.attributes[i].tensor);
    }
  }

  // An extent of -1 is computed from the others, so that there may be one.
  void open_shape(NodeProto& node, const TensorProto& other) {
    Tensor shape = read_tensor(*node.attributes[0].tensor, {});
    const Tensor of_other = read_tensor(other, {});
    if (shape.type() != of_other.type()) refuse(reader_of(node));
    const auto extents = shape.as<std::int64_t>();
    const auto others = of_other.as<std::int64_t>();
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (extents[i] != others[i]) extents[i] = -1;
    if (std::ranges::count(extents, -1) != 1 || std::ranges::count(extents, 0) > 0) refuse(reader_of(node));
    const Tensor& kept = tensors_.emplace_back(std::move(shape));
    node.attributes[0].tensor->raw =
        std::string_view(reinterpret_cast<const char*>(kept.data()), kept.bytes());
  }

  void open_values(std::vector<ValueProto>& values, const std::vector<ValueProto>& others) {
    std::map<std::string, const ValueProto*> by_name;
    for (const ValueProto& other : others) by_name[other.name] = &other;
    for (ValueProto& value : values) {
      const auto other = by_name.find(value.name);
      if (other == by_name.end() || other->second->extents.size() != value.extents.size()) refuse(value.name);
      for (std::size_t i = 0; i < value.extents.size(); ++i)
        if (value.extents[i] != other->second->extents[i]) value.extents[i] = -1;
    }
  }

  // Returns the name of the node that reads a constant.
  std::string reader_of(const NodeProto& constant) const {
    for (const NodeProto& node : model_.graph.nodes)
      if (std::ranges::find(node.inputs, constant.outputs[0]) != node.inputs.end()) return node.name;
    return constant.name;
  }

  ModelProto model_;
  GraphProto other_;
  std::set<std::string> shapes_;
  std::deque<Tensor> tensors_;  // to which the model refers
};

}  // namespace

std::string with_open_batch(std::string_view one, std::string_view other) {
  return BatchOpener(one, other).run();
}

}  // namespace plexaura::onnx
