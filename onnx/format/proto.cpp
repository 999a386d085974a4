#include "onnx/format/proto.h"

#include <fmt/format.h>

#include "onnx/format/wire.h"

#include "core/base/error.h"

namespace plexaura::onnx {

namespace {

// Counts the messages of a model. A message of two bytes takes some hundred bytes of memory.
class MessageCount {
 public:
  explicit MessageCount(std::int64_t most) : most_(most) {}
  void add() {
    if (++count_ > most_)
      throw UserError(
          fmt::format("it has more than {} nodes, attributes and names, which is the limit", most_));
  }

 private:
  std::int64_t most_;
  std::int64_t count_ = 0;
};

// Calls `take` for each field of a message.
template <class Take>
void for_each_field(std::string_view bytes, Take&& take) {
  WireReader fields(bytes);
  while (fields.next()) take(fields);
}

std::pair<std::string, std::string> parse_entry(std::string_view bytes) {
  std::pair<std::string, std::string> entry;
  for_each_field(bytes, [&](const WireReader& field) {
    if (field.number() == 1) entry.first = field.text();
    if (field.number() == 2) entry.second = field.text();
  });
  return entry;
}

void parse_extent(std::string_view bytes, ValueProto& value) {
  std::int64_t extent = -1;
  for_each_field(bytes, [&](const WireReader& field) {
    if (field.number() == 1) extent = field.integer();
    if (field.number() == 2) value.open_names[value.extents.size()] = field.text();
  });
  value.extents.push_back(extent);
}

void parse_tensor_type(std::string_view bytes, ValueProto& value) {
  for_each_field(bytes, [&](const WireReader& field) {
    if (field.number() == 1) value.type = static_cast<ElementType>(field.integer());
    if (field.number() != 2) return;
    value.has_shape = true;
    for_each_field(field.bytes(), [&](const WireReader& axis) {
      if (axis.number() == 1) parse_extent(axis.bytes(), value);
    });
  });
}

ValueProto parse_value(std::string_view bytes) {
  ValueProto value{.has_shape = false};
  for_each_field(bytes, [&](const WireReader& field) {
    if (field.number() == 1) value.name = field.text();
    if (field.number() != 2) return;
    for_each_field(field.bytes(), [&](const WireReader& kind) {
      if (kind.number() == 1) parse_tensor_type(kind.bytes(), value);
    });
  });
  return value;
}

// The domain of the standard's own ops has two names.
std::string domain_of(const WireReader& field) {
  std::string domain = field.text();
  return domain == "ai.onnx" ? std::string() : domain;
}

GraphProto parse_graph(std::string_view bytes, int depth, MessageCount& messages);

AttributeProto parse_attribute(std::string_view bytes, int depth, MessageCount& messages) {
  messages.add();
  AttributeProto attribute;
  for_each_field(bytes, [&](const WireReader& field) {
    switch (field.number()) {
      case 1:
        attribute.name = field.text();
        break;
      case 2:
        attribute.real = field.real();
        break;
      case 3:
        attribute.integer = field.integer();
        break;
      case 4:
        attribute.text = field.text();
        break;
      case 5:
        attribute.tensor = std::make_shared<const TensorProto>(parse_tensor(field.bytes()));
        break;
      case 6:
        attribute.graph = std::make_shared<const GraphProto>(parse_graph(field.bytes(), depth + 1, messages));
        break;
      case 7:
        field.add_to(attribute.reals);
        break;
      case 8:
        field.add_to(attribute.integers);
        break;
      case 9:
        messages.add();
        attribute.texts.push_back(field.text());
        break;
      case 20:
        attribute.kind = static_cast<AttributeKind>(field.integer());
        break;
      case 21:
        attribute.refers_to = field.text();
        break;
      default:
        break;
    }
  });
  return attribute;
}

NodeProto parse_node(std::string_view bytes, int depth, MessageCount& messages) {
  messages.add();
  NodeProto node;
  for_each_field(bytes, [&](const WireReader& field) {
    switch (field.number()) {
      case 1:
        messages.add();
        node.inputs.push_back(field.text());
        break;
      case 2:
        messages.add();
        node.outputs.push_back(field.text());
        break;
      case 3:
        node.name = field.text();
        break;
      case 4:
        node.op = field.text();
        break;
      case 5:
        node.attributes.push_back(parse_attribute(field.bytes(), depth, messages));
        break;
      case 7:
        node.domain = domain_of(field);
        break;
      case 8:
        node.overload = field.text();
        break;
      default:
        break;
    }
  });
  return node;
}

GraphProto parse_graph(std::string_view bytes, int depth, MessageCount& messages) {
  if (depth > most_nested) throw UserError(fmt::format("graphs are nested more than {} deep", most_nested));
  GraphProto graph;
  for_each_field(bytes, [&](const WireReader& field) {
    switch (field.number()) {
      case 1:
        graph.nodes.push_back(parse_node(field.bytes(), depth, messages));
        break;
      case 2:
        graph.name = field.text();
        break;
      case 5:
        messages.add();
        graph.initialisers.push_back(parse_tensor(field.bytes()));
        break;
      case 11:
        messages.add();
        graph.inputs.push_back(parse_value(field.bytes()));
        break;
      case 12:
        messages.add();
        graph.outputs.push_back(parse_value(field.bytes()));
        break;
      case 13:
        messages.add();
        graph.inner_values.push_back(parse_value(field.bytes()));
        break;
      case 15:
        graph.has_sparse = true;
        break;
      default:
        break;
    }
  });
  return graph;
}

void parse_opset(std::string_view bytes, OpsetVersions& opsets) {
  std::string domain;
  std::int64_t version = 0;
  for_each_field(bytes, [&](const WireReader& field) {
    if (field.number() == 1) domain = domain_of(field);
    if (field.number() == 2) version = field.integer();
  });
  opsets[domain] = version;
}

FunctionProto parse_function(std::string_view bytes, MessageCount& messages) {
  FunctionProto function;
  for_each_field(bytes, [&](const WireReader& field) {
    messages.add();
    switch (field.number()) {
      case 1:
        function.name = field.text();
        break;
      case 4:
        function.inputs.push_back(field.text());
        break;
      case 5:
        function.outputs.push_back(field.text());
        break;
      case 6:
        function.attributes.push_back(field.text());
        break;
      case 7:
        function.nodes.push_back(parse_node(field.bytes(), 0, messages));
        break;
      case 9:
        parse_opset(field.bytes(), function.opsets);
        break;
      case 10:
        function.domain = domain_of(field);
        break;
      case 11:
        function.defaults.push_back(parse_attribute(field.bytes(), 0, messages));
        break;
      case 13:
        function.overload = field.text();
        break;
      default:
        break;
    }
  });
  return function;
}

}  // namespace

DType dtype_of(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return DType::float32;
    case ElementType::float64:
      return DType::float64;
    case ElementType::float16:
      return DType::float16;
    case ElementType::bfloat16:
      return DType::bfloat16;
    case ElementType::int64:
      return DType::int64;
    case ElementType::int32:
      return DType::int32;
    case ElementType::uint8:
      return DType::uint8;
    case ElementType::boolean:
      return DType::boolean;
    default:
      throw UserError(fmt::format(
          "elements of the standard's type {} are not supported; there are float64, float32, bfloat16, "
          "float16, int64, int32, uint8 and bool",
          static_cast<std::int32_t>(type)));
  }
}

ElementType element_type_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return ElementType::float64;
    case DType::float32:
      return ElementType::float32;
    case DType::bfloat16:
      return ElementType::bfloat16;
    case DType::float16:
      return ElementType::float16;
    case DType::int64:
      return ElementType::int64;
    case DType::int32:
      return ElementType::int32;
    case DType::uint8:
      return ElementType::uint8;
    case DType::boolean:
      return ElementType::boolean;
  }
  return ElementType::undefined;
}

TensorProto parse_tensor(std::string_view bytes) {
  TensorProto tensor;
  for_each_field(bytes, [&](const WireReader& field) {
    switch (field.number()) {
      case 1:
        field.add_to(tensor.extents);
        break;
      case 2:
        tensor.type = static_cast<ElementType>(field.integer());
        break;
      case 4:
        field.add_to(tensor.floats);
        break;
      case 5:
      case 7:
      case 11:
        field.add_to(tensor.integers);
        break;
      case 8:
        tensor.name = field.text();
        break;
      case 9:
        tensor.raw = field.bytes();
        break;
      case 10:
        field.add_to(tensor.doubles);
        break;
      case 13:
        tensor.external.insert(parse_entry(field.bytes()));
        break;
      case 14:
        tensor.is_external = field.integer() == 1;
        break;
      default:
        break;
    }
  });
  return tensor;
}

ModelProto parse_model(std::string_view bytes, std::int64_t most_messages) {
  ModelProto model;
  MessageCount messages(most_messages);
  bool has_graph = false;
  for_each_field(bytes, [&](const WireReader& field) {
    if (field.number() == 7) {
      model.graph = parse_graph(field.bytes(), 0, messages);
      has_graph = true;
    }
    if (field.number() == 8) parse_opset(field.bytes(), model.opsets);
    if (field.number() == 25) {
      messages.add();
      model.functions.push_back(parse_function(field.bytes(), messages));
    }
  });
  if (!has_graph) throw UserError("it is no ONNX model, for it has no graph; name another file");
  return model;
}

}  // namespace plexaura::onnx
