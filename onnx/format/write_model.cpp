#include "onnx/format/write_model.h"

#include "training/files/wire_writer.h"

namespace plexaura::onnx {

namespace {

// The version of the file format, which belongs to version 18 of the standard's ops.
constexpr std::int64_t format_version = 8;

void write_tensor(WireWriter& to, const TensorProto& tensor) {
  for (const std::int64_t extent : tensor.extents) to.integer(1, extent);
  to.integer(2, static_cast<std::int64_t>(tensor.type));
  if (!tensor.name.empty()) to.bytes(8, tensor.name);
  if (!tensor.is_external) return to.bytes(9, tensor.raw.value_or(std::string_view()));
  for (const auto& [key, value] : tensor.external) {
    to.message(13, [&] {
      to.bytes(1, key);
      to.bytes(2, value);
    });
  }
  to.integer(14, 1);
}

void write_value(WireWriter& to, const ValueProto& value) {
  to.bytes(1, value.name);
  const auto write_extents = [&] {
    for (std::size_t axis = 0; axis < value.extents.size(); ++axis)
      to.message(1, [&] {
        if (value.extents[axis] >= 0) return to.integer(1, value.extents[axis]);
        if (const auto name = value.open_names.find(axis); name != value.open_names.end())
          to.bytes(2, name->second);
      });
  };
  const auto write_tensor_type = [&] {
    to.integer(1, static_cast<std::int64_t>(value.type));
    to.message(2, write_extents);
  };
  to.message(2, [&] { to.message(1, write_tensor_type); });
}

void write_attribute(WireWriter& to, const AttributeProto& attribute) {
  to.bytes(1, attribute.name);
  switch (attribute.kind) {
    case AttributeKind::real:
      to.real(2, attribute.real);
      break;
    case AttributeKind::integer:
      to.integer(3, attribute.integer);
      break;
    case AttributeKind::text:
      to.bytes(4, attribute.text);
      break;
    case AttributeKind::tensor:
      to.message(5, [&] { write_tensor(to, *attribute.tensor); });
      break;
    default:
      for (const std::int64_t value : attribute.integers) to.integer(8, value);
      break;
  }
  to.integer(20, static_cast<std::int64_t>(attribute.kind));
}

void write_node(WireWriter& to, const NodeProto& node) {
  for (const std::string& input : node.inputs) to.bytes(1, input);
  for (const std::string& output : node.outputs) to.bytes(2, output);
  to.bytes(3, node.name);
  to.bytes(4, node.op);
  for (const AttributeProto& attribute : node.attributes)
    to.message(5, [&] { write_attribute(to, attribute); });
}

void write_graph(WireWriter& to, const GraphProto& graph) {
  for (const NodeProto& node : graph.nodes) to.message(1, [&] { write_node(to, node); });
  to.bytes(2, graph.name);
  for (const TensorProto& tensor : graph.initialisers) to.message(5, [&] { write_tensor(to, tensor); });
  for (const ValueProto& input : graph.inputs) to.message(11, [&] { write_value(to, input); });
  for (const ValueProto& output : graph.outputs) to.message(12, [&] { write_value(to, output); });
  for (const ValueProto& value : graph.inner_values) to.message(13, [&] { write_value(to, value); });
}

}  // namespace

std::string write_model(const ModelProto& model) {
  WireWriter to;
  to.integer(1, format_version);
  to.bytes(2, "plexaura");
  to.message(7, [&] { write_graph(to, model.graph); });
  for (const auto& [domain, version] : model.opsets) {
    to.message(8, [&] {
      to.bytes(1, domain);
      to.integer(2, version);
    });
  }
  return to.take();
}

}  // namespace plexaura::onnx
