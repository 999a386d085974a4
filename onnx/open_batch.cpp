#include "onnx/open_batch.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <set>
#include <span>

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
  return same_tensor && a.name == b.name && a.kind == b.kind && a.real == b.real && a.integer == b.integer &&
         a.text == b.text && a.integers == b.integers;
}

// The axis of an input whose extent is the number of samples.
struct Batch {
  std::string input;
  std::int64_t axis = 0;
  std::int64_t extent = 0;    // in the first file
  std::int64_t of_other = 0;  // in the second file
};

class BatchOpener {
 public:
  BatchOpener(std::string_view one, std::string_view other)
      : model_(parse_model(one)), other_(parse_model(other).graph) {}

  std::string run() {
    GraphProto& graph = model_.graph;
    if (graph.nodes.size() != other_.nodes.size())
      refuse(graph.nodes.empty() ? std::string() : graph.nodes.back().name);
    find_shapes();
    find_batch();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) open_node(graph.nodes[i], other_.nodes[i]);
    added_.insert(added_.end(), std::make_move_iterator(graph.nodes.begin()),
                  std::make_move_iterator(graph.nodes.end()));
    graph.nodes = std::move(added_);
    std::erase_if(graph.nodes, [](const NodeProto& node) { return node.op.empty(); });
    open_values(graph.inputs, other_.inputs);
    open_values(graph.outputs, other_.outputs);
    open_values(graph.inner_values, other_.inner_values);
    return write_model(model_);
  }

 private:
  // Finds the constants that are only shapes to which values are reshaped or repeated.
  void find_shapes() {
    std::set<std::string> others;
    for (const NodeProto& node : model_.graph.nodes) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const bool is_shape = i == 1 && (node.op == "Reshape" || node.op == "Expand");
        (is_shape ? shapes_ : others).insert(node.inputs[i]);
        if (is_shape && node.op == "Expand") repeating_.insert(node.inputs[i]);
      }
    }
    for (const std::string& name : others) shapes_.erase(name);
  }

  // Finds the axis of an input that is the batch.
  void find_batch() {
    for (std::size_t i = 0; i < model_.graph.inputs.size() && i < other_.inputs.size(); ++i) {
      const auto& extents = model_.graph.inputs[i].extents;
      const auto& others = other_.inputs[i].extents;
      const auto [at, in_other] = std::ranges::mismatch(extents, others);
      if (at == extents.end() || in_other == others.end()) continue;
      batch_ = {model_.graph.inputs[i].name, at - extents.begin(), *at, *in_other};
      return;
    }
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

  void open_shape(NodeProto& node, const TensorProto& other) {
    Tensor shape = read_tensor(*node.attributes[0].tensor, {});
    const Tensor of_other = read_tensor(other, {});
    if (shape.type() != of_other.type()) refuse(reader_of(node));
    const auto extents = shape.as<std::int64_t>();
    const auto others = of_other.as<std::int64_t>();
    const std::size_t differing = count_differing(extents, others);
    if (differing == 1 && std::ranges::count(extents, 0) == 0 && !repeating_.contains(node.outputs[0]))
      return compute_extent(node, std::move(shape), others);
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (extents[i] != others[i] && (extents[i] != batch_.extent || others[i] != batch_.of_other))
        refuse(reader_of(node));
    join_extents(node, extents, others);
  }

  static std::size_t count_differing(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
    return count;
  }

  // An extent of -1 of a Reshape is computed from the others, so that there may be one.
  void compute_extent(NodeProto& constant, Tensor shape, std::span<const std::int64_t> others) {
    const auto extents = shape.as<std::int64_t>();
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (extents[i] != others[i]) extents[i] = -1;
    constant.attributes[0].tensor = stored(std::move(shape));
  }

  // Replaces a constant by a Concat of its extents, some of which are the batch.
  void join_extents(NodeProto& constant, std::span<const std::int64_t> extents,
                    std::span<const std::int64_t> others) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (extents[i] != others[i]) {
        parts.push_back(batch_extent());
        continue;
      }
      parts.push_back(fmt::format("{}/{}", constant.outputs[0], i));
      AttributeProto value;
      value.name = "value";
      value.kind = AttributeKind::tensor;
      value.tensor = stored(Tensor::of({1}, std::vector{extents[i]}));
      added_.push_back({parts[i], "Constant", {}, {}, {parts[i]}, {value}});
    }
    constant.op = "Concat";
    constant.inputs = std::move(parts);
    constant.attributes = {integer_attribute("axis", 0)};
    added_.push_back(std::move(constant));
    constant = {};
  }

  // Returns the name of the batch as a value [1], which a node computes.
  std::string batch_extent() {
    const std::string name = "open_batch/extent";
    if (std::ranges::find(added_, name, &NodeProto::name) == added_.end())
      added_.push_back(
          {name,
           "Shape",
           {},
           {batch_.input},
           {name},
           {integer_attribute("start", batch_.axis), integer_attribute("end", batch_.axis + 1)}});
    return name;
  }

  static AttributeProto integer_attribute(const std::string& name, std::int64_t value) {
    AttributeProto attribute;
    attribute.name = name;
    attribute.kind = AttributeKind::integer;
    attribute.integer = value;
    return attribute;
  }

  TensorProto stored(Tensor value) {
    const Tensor& kept = tensors_.emplace_back(std::move(value));
    TensorProto proto;
    proto.extents = kept.shape().extents();
    proto.type = element_type_of(kept.dtype());
    proto.raw = std::string_view(reinterpret_cast<const char*>(kept.data()), kept.bytes());
    return proto;
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
  std::set<std::string> shapes_;     // constants that are only shapes
  std::set<std::string> repeating_;  // those to which values are repeated
  Batch batch_;
  std::vector<NodeProto> added_;  // come first in the file
  std::deque<Tensor> tensors_;    // to which the model refers
};

}  // namespace

std::string with_open_batch(std::string_view one, std::string_view other) {
  return BatchOpener(one, other).run();
}

}  // namespace plexaura::onnx
