#include "onnx/open_batch.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

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
  std::int64_t extent = 0;    // extent in the first file
  std::int64_t of_other = 0;  // extent in the second file
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
      if (node.op != "Constant") refuse(node.name);
      if (!shapes_.contains(node.outputs[0])) return open_repeated(node, *other.attributes[i].tensor);
      open_shape(node, *other.attributes[i].tensor);
    }
  }

  // Replaces a constant that has the same elements for each sample, such as the start of a recurrent layer, by an Expand
  // of these elements.
  void open_repeated(NodeProto& constant, const TensorProto& other) {
    const TensorProto& value = *constant.attributes[0].tensor;
    const std::optional<std::size_t> axis = batch_axis(value.extents, other.extents);
    if (!axis || value.type != other.type) refuse(reader_of(constant));
    const std::optional<Tensor> element = repeated_element(read_tensor(value, {}), *axis);
    if (!element || element != repeated_element(read_tensor(other, {}), *axis)) refuse(reader_of(constant));
    const std::string name = constant.outputs[0];
    NodeProto shape{name + "/shape", "Constant", {}, {}, {name + "/shape"}, {}};
    join_extents(shape, value.extents, other.extents);
    added_.push_back(constant_node(name + "/element", *element));
    added_.push_back({name, "Expand", {}, {name + "/element", name + "/shape"}, {name}, {}});
    constant = {};
  }

  // Returns the only axis in which the extents differ, if it is the batch there.
  std::optional<std::size_t> batch_axis(const std::vector<std::int64_t>& extents,
                                        const std::vector<std::int64_t>& others) const {
    if (extents.size() != others.size() || count_differing(extents, others) != 1) return std::nullopt;
    const auto axis = static_cast<std::size_t>(std::ranges::mismatch(extents, others).in1 - extents.begin());
    return is_batch(extents[axis], others[axis]) ? std::optional(axis) : std::nullopt;
  }

  bool is_batch(std::int64_t extent, std::int64_t of_other) const {
    return extent == batch_.extent && of_other == batch_.of_other;
  }

  // Returns the elements with which a tensor begins along an axis, with an extent of 1 there. Returns nothing if the
  // tensor does not repeat them to its end.
  static std::optional<Tensor> repeated_element(const Tensor& tensor, std::size_t axis) {
    if (tensor.bytes() == 0) return std::nullopt;
    std::vector<std::int64_t> extents = tensor.shape().extents();
    const auto count = static_cast<std::size_t>(std::exchange(extents[axis], 1));
    Tensor element(TensorType{tensor.dtype(), Shape(extents)});
    std::size_t bytes = tensor.bytes() / count;
    for (std::size_t i = 0; i < axis; ++i) bytes /= static_cast<std::size_t>(extents[i]);
    for (std::size_t begin = 0; begin < element.bytes(); begin += bytes) {
      const std::byte* first = tensor.data() + begin * count;
      for (std::size_t i = 1; i < count; ++i)
        if (std::memcmp(first, first + i * bytes, bytes) != 0) return std::nullopt;
      std::memcpy(element.data() + begin, first, bytes);
    }
    return element;
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
      if (extents[i] != others[i] && !is_batch(extents[i], others[i])) refuse(reader_of(node));
    join_extents(node, extents, others);
  }

  static std::size_t count_differing(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
    return count;
  }

  // Replaces the extent that depends on the number of samples by -1. A Reshape computes one such extent from the
  // others.
  void compute_extent(NodeProto& constant, Tensor shape, std::span<const std::int64_t> others) {
    const auto extents = shape.as<std::int64_t>();
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (extents[i] != others[i]) extents[i] = -1;
    constant.attributes[0].tensor = std::make_shared<const TensorProto>(stored(std::move(shape)));
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
      added_.push_back(constant_node(parts[i], Tensor::of({1}, std::vector{extents[i]})));
    }
    constant.op = "Concat";
    constant.inputs = std::move(parts);
    constant.attributes = {integer_attribute("axis", 0)};
    added_.push_back(std::move(constant));
    constant = {};
  }

  // Returns the name of a value [1] with the number of samples, which a node computes.
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

  NodeProto constant_node(const std::string& name, Tensor value) {
    AttributeProto attribute;
    attribute.name = "value";
    attribute.kind = AttributeKind::tensor;
    attribute.tensor = std::make_shared<const TensorProto>(stored(std::move(value)));
    return {name, "Constant", {}, {}, {name}, {attribute}};
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
      for (std::size_t i = 0; i < value.extents.size(); ++i) {
        if (value.extents[i] == other->second->extents[i]) continue;
        if (is_batch(value.extents[i], other->second->extents[i])) value.open_names[i] = "N";
        value.extents[i] = -1;
      }
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
  std::set<std::string> repeating_;  // shapes to which values are repeated
  Batch batch_;
  std::vector<NodeProto> added_;  // nodes that come first in the file
  std::deque<Tensor> tensors_;    // tensors to which the model refers
};

}  // namespace

std::string with_open_batch(std::string_view one, std::string_view other) {
  return BatchOpener(one, other).run();
}

}  // namespace plexaura::onnx
