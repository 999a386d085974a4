#include "core/device/region_text.h"

#include <algorithm>
#include <fmt/format.h>

namespace plexaura {

namespace {

// Returns the name of a value within the region: "#" and the index of an input, or "%" and the indices of a
// node and of its output.
std::string reference(const Region& region, Value value) {
  const auto node = std::ranges::find(region.nodes, value.node);
  if (node != region.nodes.end()) return fmt::format("%{}.{}", node - region.nodes.begin(), value.output);
  return fmt::format("#{}", std::ranges::find(region.inputs, value) - region.inputs.begin());
}

}  // namespace

std::string text_of(const RegionQuery& query, const Candidate& candidate) {
  const Region& region = query.region;
  std::string text = region.kind;
  for (const NodeId node : region.nodes) {
    const NodeRecord& record = query.graph.record(node);
    text += fmt::format("\n{} {{{}}}", record.op->name(), to_string(record.op->description()));
    for (const Value input : record.inputs) text += fmt::format(" {}", reference(region, input));
  }
  for (std::size_t i = 0; i < region.inputs.size(); ++i)
    text += fmt::format("\n{} {}", to_string(query.type(region.inputs[i])), to_string(candidate.inputs[i]));
  for (std::size_t i = 0; i < region.outputs.size(); ++i)
    text += fmt::format("\n{} {} {} {}", reference(region, region.outputs[i]),
                        to_string(query.type(region.outputs[i])), to_string(candidate.outputs[i]),
                        query.wanted[i] ? "wanted" : "unwanted");
  return text;
}

}  // namespace plexaura
