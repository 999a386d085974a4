#include "onnx/export/model_writer.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

#include "onnx/format/write_model.h"

#include "core/base/error.h"

namespace plexaura::onnx {

namespace {

// Version 18 is the first one with BitwiseAnd and Mish, and programs of 2023 and later read it.
constexpr std::int64_t written_opset = 18;
constexpr std::size_t largest_shared_constant = 256;  // bytes
constexpr std::size_t external_alignment = 4096;      // bytes

ValueProto described(const std::string& name, const TensorType& type) {
  return {.name = name, .type = element_type_of(type.dtype), .extents = type.shape.extents()};
}

std::string key_of(const Tensor& value) {
  return to_string(value.type()) + std::string(reinterpret_cast<const char*>(value.data()), value.bytes());
}

}  // namespace

std::string ModelWriter::unique(const std::string& name) {
  std::string result = name;
  for (int i = 2; !taken_.insert(result).second; ++i) result = fmt::format("{}_{}", name, i);
  return result;
}

void ModelWriter::add_input(const std::string& name, const TensorType& type) {
  graph_.inputs.push_back(described(name, type));
}

TensorProto ModelWriter::stored(const std::string& name, Tensor value) {
  const Tensor& kept = tensors_.emplace_back(std::move(value));
  return {.name = name,
          .extents = kept.shape().extents(),
          .type = element_type_of(kept.dtype()),
          .raw = std::string_view(reinterpret_cast<const char*>(kept.data()), kept.bytes())};
}

void ModelWriter::add_initialiser(const std::string& name, Tensor value) {
  graph_.initialisers.push_back(stored(name, std::move(value)));
}

AttributeProto ModelWriter::attribute(const std::string& name, AttributeValue value) {
  AttributeProto proto;
  proto.name = name;
  if (auto* integer = std::get_if<std::int64_t>(&value)) {
    proto.kind = AttributeKind::integer;
    proto.integer = *integer;
  } else if (auto* real = std::get_if<float>(&value)) {
    proto.kind = AttributeKind::real;
    proto.real = *real;
  } else if (auto* text = std::get_if<std::string>(&value)) {
    proto.kind = AttributeKind::text;
    proto.text = std::move(*text);
  } else if (auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    proto.kind = AttributeKind::integers;
    proto.integers = std::move(*integers);
  } else {
    proto.kind = AttributeKind::tensor;
    proto.tensor = std::make_shared<const TensorProto>(stored("", std::move(std::get<Tensor>(value))));
  }
  return proto;
}

ModelWriter::Names ModelWriter::add(const std::string& name, std::string_view op, Names inputs,
                                    const std::vector<TensorType>& types, Attributes attributes) {
  NodeProto node{.name = unique(name),
                 .op = std::string(op),
                 .domain = {},
                 .inputs = std::move(inputs),
                 .outputs = {},
                 .attributes = {}};
  for (std::size_t i = 0; i < types.size(); ++i) {
    node.outputs.push_back(i == 0 ? node.name : unique(fmt::format("{}.{}", node.name, i)));
    types_[node.outputs[i]] = types[i];
  }
  for (auto& entry : attributes) node.attributes.push_back(attribute(entry.first, std::move(entry.second)));
  return graph_.nodes.emplace_back(std::move(node)).outputs;
}

std::string ModelWriter::constant(const Tensor& value) {
  const bool is_shared = value.bytes() <= largest_shared_constant;
  const std::string key = is_shared ? key_of(value) : std::string();
  if (const auto found = names_of_constants_.find(key); is_shared && found != names_of_constants_.end())
    return found->second;
  std::string name = unique(fmt::format("constant_{}", constants_.size()));
  types_[name] = value.type();
  constants_.push_back({.name = name,
                        .op = "Constant",
                        .domain = {},
                        .inputs = {},
                        .outputs = {name},
                        .attributes = {attribute("value", value)}});
  if (is_shared) names_of_constants_[key] = name;
  return name;
}

ModelWriter::Names ModelWriter::add_missing(const std::string& name, MissingOp missing, Names inputs,
                                            std::size_t outputs) {
  const std::string taken = unique(name);
  missing_[taken] = std::move(missing);
  NodeProto node{
      .name = taken, .op = {}, .domain = {}, .inputs = std::move(inputs), .outputs = {}, .attributes = {}};
  for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back(fmt::format("{}.{}", taken, i));
  return graph_.nodes.emplace_back(std::move(node)).outputs;
}

void ModelWriter::add_output(const std::string& name, const std::string& value, const TensorType& type) {
  const bool is_made_here = std::ranges::any_of(graph_.nodes, [&](const NodeProto& node) {
    return std::ranges::find(node.outputs, value) != node.outputs.end();
  });
  const bool is_output = std::ranges::find(outputs_, value) != outputs_.end();
  outputs_.push_back(is_made_here && !is_output ? value
                                                : add(name + "/copy", "Identity", {value}, {type}, {})[0]);
  graph_.outputs.push_back(described(name, type));
}

void ModelWriter::remove_unneeded() {
  std::set<std::string, std::less<>> needed(outputs_.begin(), outputs_.end());
  const auto is_needed = [&](const NodeProto& node) {
    return std::ranges::any_of(node.outputs, [&](const std::string& name) { return needed.contains(name); });
  };
  std::vector<NodeProto> kept;
  for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
    if (!is_needed(*node)) continue;
    needed.insert(node->inputs.begin(), node->inputs.end());
    kept.push_back(std::move(*node));
  }
  graph_.nodes.clear();
  for (NodeProto& node : constants_)
    if (is_needed(node)) graph_.nodes.push_back(std::move(node));
  std::move(kept.rbegin(), kept.rend(), std::back_inserter(graph_.nodes));
  std::erase_if(graph_.initialisers,
                [&](const TensorProto& tensor) { return !needed.contains(tensor.name); });
}

void ModelWriter::check_none_missing() const {
  std::map<std::string, std::vector<std::string>> places;  // source lines of the nodes, by op
  for (const NodeProto& node : graph_.nodes) {
    const auto found = missing_.find(node.name);
    if (found == missing_.end()) continue;
    places[found->second.op].push_back(found->second.place);
  }
  if (places.empty()) return;
  std::vector<std::string> lines;
  for (const auto& [op, nodes] : places) lines.push_back(fmt::format("{} ({})", op, fmt::join(nodes, ", ")));
  throw UserError(fmt::format(
      "these ops have no counterpart in version {} of ONNX's ops: {}; replace them by ops that have one",
      written_opset, fmt::join(lines, "; ")));
}

// Returns the number of bytes of all tensors within the file.
std::size_t ModelWriter::bytes_of_tensors() const {
  std::size_t bytes = 0;
  for (const TensorProto& tensor : graph_.initialisers)
    if (tensor.raw) bytes += tensor.raw->size();
  for (const NodeProto& node : graph_.nodes)
    for (const AttributeProto& attribute : node.attributes)
      if (attribute.tensor) bytes += attribute.tensor->raw->size();
  return bytes;
}

void ModelWriter::move_to(const ExternalFile& external) {
  static const std::string zeros(external_alignment, '\0');
  std::size_t end = 0;  // end of the external file
  for (TensorProto& tensor : graph_.initialisers) {
    const std::string_view raw = *tensor.raw;
    if (raw.empty()) continue;
    const std::size_t padding = (external_alignment - end % external_alignment) % external_alignment;
    if (external.append) {
      external.append(std::string_view(zeros).substr(0, padding));
      external.append(raw);
    }
    tensor.is_external = true;
    tensor.external = {{"location", external.location},
                       {"offset", std::to_string(end + padding)},
                       {"length", std::to_string(raw.size())}};
    tensor.raw.reset();
    end += padding + raw.size();
  }
}

void ModelWriter::check_size(std::size_t limit) const {
  const std::size_t bytes = bytes_of_tensors();
  if (bytes >= limit)
    throw UserError(fmt::format(
        "the parameters and constants within the file have {} bytes, and a file of ONNX has less "
        "than 2 GiB; store parameters in a file of their own, and make large constants parameters",
        bytes));
}

void ModelWriter::rename_outputs() {
  std::map<std::string, std::string> names;
  for (std::size_t i = 0; i < outputs_.size(); ++i) names[outputs_[i]] = graph_.outputs[i].name;
  const auto rename = [&](std::string& name) {
    if (const auto found = names.find(name); found != names.end()) name = found->second;
  };
  for (NodeProto& node : graph_.nodes) {
    std::ranges::for_each(node.inputs, rename);
    std::ranges::for_each(node.outputs, [&](std::string& name) {
      const std::string before = name;
      rename(name);
      if (name == before) graph_.inner_values.push_back(described(name, types_.at(name)));
    });
  }
}

std::string ModelWriter::finish(const std::string& graph_name, const ExternalFile* external,
                                std::size_t limit) {
  remove_unneeded();
  check_none_missing();
  if (external != nullptr && (external->is_always_used || bytes_of_tensors() >= limit)) move_to(*external);
  check_size(limit);
  rename_outputs();
  graph_.name = graph_name;
  ModelProto model;
  model.opsets[""] = written_opset;
  model.graph = std::move(graph_);
  return write_model(model);
}

}  // namespace plexaura::onnx
