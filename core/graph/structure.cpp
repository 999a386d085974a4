#include "core/graph/structure.h"

#include <fmt/format.h>

#include "core/base/fnv.h"

namespace plexaura {

namespace {

std::string input_text(const Value& value) { return fmt::format("%{}.{} ", value.node, value.output); }

// Adds the contents of tensors to the hash, since a description's text has only the type of a larger tensor.
std::uint64_t hash_of_tensors(const Description& description, std::uint64_t hash) {
  for (const auto& [key, value] : description.fields())
    if (const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&value))
      hash = fnv(std::span((*tensor)->data(), (*tensor)->bytes()), hash);
  return hash;
}

}  // namespace

std::uint64_t structure_hash(const Graph& graph) {
  std::uint64_t hash = fnv_start;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeRecord& record = graph.record(id);
    const Description description = record.op->description();
    std::string text = fmt::format("{} {} of ", record.op->name(), to_string(description));
    for (const Value& input : record.inputs) text += input_text(input);
    for (const TensorType& type : record.types) text += to_string(type);
    hash = hash_of_tensors(description, fnv(text + '\n', hash));
  }
  for (const Update& update : graph.updates())
    hash = fnv(input_text(update.buffer) + input_text(update.next), hash);
  return hash;
}

}  // namespace plexaura
