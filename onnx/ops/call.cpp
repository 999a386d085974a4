#include "onnx/ops/call.h"

#include <algorithm>
#include <fmt/format.h>

#include "onnx/format/tensor_data.h"

#include "core/graph/leaf.h"
#include "core/ops/constants.h"

namespace plexaura::onnx {

const Tensor* known_value(const Node& node) {
  const Leaf* leaf = as_leaf(*node.graph().record(node.id()).op);
  return leaf != nullptr && leaf->kind() == LeafKind::constant ? leaf->value().get() : nullptr;
}

Node counted(Graph& graph, std::int64_t count) {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (count > most)
    throw UserError(
        fmt::format("it needs the numbers from 0 to {}, but at most {} are supported", count - 1, most));
  return iota(graph, count);
}

Node with_shape_of(const Node& x, const Node& value) {
  if (value.shape() != x.shape())
    throw UserError(fmt::format("an operand must broadcast to {}, but would make the result {}",
                                to_string(x.shape()), to_string(value.shape())));
  return value;
}

Node Call::operator[](std::size_t i) const {
  if (!has(i)) throw UserError(fmt::format("input {} is missing", i));
  return inputs_[i];
}

const Tensor& Call::value(std::size_t i) const {
  const Tensor* known = known_value((*this)[i]);
  if (known == nullptr)
    throw UnknownValue(
        proto_.inputs[i],
        fmt::format("input {} ('{}') must be known when the graph is built, but it is computed "
                    "when the graph runs",
                    i, proto_.inputs[i]));
  return *known;
}

std::vector<std::int64_t> Call::input_integers(std::size_t i) const {
  const Tensor whole = value(i).cast(DType::int64);
  const auto elements = whole.as<std::int64_t>();
  return {elements.begin(), elements.end()};
}

std::vector<std::int64_t> Call::optional_integers(std::size_t i) const {
  return has(i) ? input_integers(i) : std::vector<std::int64_t>();
}

double Call::number(std::size_t i) const {
  const Tensor& known = value(i);
  if (known.elements() != 1)
    throw UserError(fmt::format("input {} must have one element, not {}", i, known.elements()));
  return known.to_doubles()[0];
}

std::int64_t Call::whole_number(std::size_t i) const {
  const std::vector<std::int64_t> numbers = input_integers(i);
  if (numbers.size() != 1)
    throw UserError(fmt::format("input {} must have one element, not {}", i, numbers.size()));
  return numbers[0];
}

bool Call::has_attribute(std::string_view name) const {
  return std::ranges::find(proto_.attributes, name, &AttributeProto::name) != proto_.attributes.end();
}

const AttributeProto* Call::find(std::string_view name, AttributeKind kind) {
  read_.emplace(name);
  const auto found = std::ranges::find(proto_.attributes, name, &AttributeProto::name);
  if (found == proto_.attributes.end()) return nullptr;
  if (!found->refers_to.empty())
    throw UserError(fmt::format(
        "its attribute '{}' refers to the attribute '{}' of a function, but the node is in no function", name,
        found->refers_to));
  if (found->kind != kind && found->kind != AttributeKind::undefined)
    throw UserError(fmt::format("its attribute '{}' is of kind {} of the standard, but must be of kind {}",
                                name, static_cast<int>(found->kind), static_cast<int>(kind)));
  return &*found;
}

std::int64_t Call::integer(std::string_view name, std::int64_t otherwise) {
  const AttributeProto* attribute = find(name, AttributeKind::integer);
  return attribute == nullptr ? otherwise : attribute->integer;
}

double Call::real(std::string_view name, double otherwise) {
  const AttributeProto* attribute = find(name, AttributeKind::real);
  return attribute == nullptr ? otherwise : static_cast<double>(attribute->real);
}

std::string Call::text(std::string_view name, std::string_view otherwise) {
  const AttributeProto* attribute = find(name, AttributeKind::text);
  return attribute == nullptr ? std::string(otherwise) : attribute->text;
}

std::vector<std::int64_t> Call::integers(std::string_view name, std::vector<std::int64_t> otherwise) {
  const AttributeProto* attribute = find(name, AttributeKind::integers);
  return attribute == nullptr ? std::move(otherwise) : attribute->integers;
}

std::vector<float> Call::reals(std::string_view name) {
  const AttributeProto* attribute = find(name, AttributeKind::reals);
  return attribute == nullptr ? std::vector<float>() : attribute->reals;
}

std::vector<std::string> Call::texts(std::string_view name) {
  const AttributeProto* attribute = find(name, AttributeKind::texts);
  return attribute == nullptr ? std::vector<std::string>() : attribute->texts;
}

std::optional<Tensor> Call::tensor(std::string_view name) {
  const AttributeProto* attribute = find(name, AttributeKind::tensor);
  if (attribute == nullptr || !attribute->tensor) return std::nullopt;
  return read_tensor(*attribute->tensor, folder_);
}

const GraphProto& Call::inner(std::string_view name) {
  const AttributeProto* attribute = find(name, AttributeKind::graph);
  if (attribute == nullptr || attribute->graph == nullptr)
    throw UserError(fmt::format("its attribute '{}', a graph, is missing", name));
  return *attribute->graph;
}

void Call::require_default(std::string_view name, std::int64_t value) {
  const std::int64_t found = integer(name, value);
  if (found != value)
    throw UserError(fmt::format("its attribute '{}' is {}, but only {} is supported", name, found, value));
}

void Call::require_default(std::string_view name, std::string_view value) {
  const std::string found = text(name, value);
  if (found != value)
    throw UserError(
        fmt::format("its attribute '{}' is '{}', but only '{}' is supported", name, found, value));
}

void Call::check_all_read() const {
  for (const AttributeProto& attribute : proto_.attributes)
    // Versions below 6 have "consumed_inputs", which allows a program to overwrite inputs.
    if (!read_.contains(attribute.name) && attribute.name != "consumed_inputs")
      throw UserError(fmt::format("its attribute '{}' is not supported", attribute.name));
}

}  // namespace plexaura::onnx
