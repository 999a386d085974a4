#include "core/device/backend.h"

#include <algorithm>

namespace plexaura {

Memory::~Memory() = default;
Event::~Event() = default;
Recording::~Recording() = default;
Launch::~Launch() = default;
Kernel::~Kernel() = default;
Backend::~Backend() = default;

Uses::Uses(const Graph& graph, std::span<const Value> kept) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeRecord& record = graph.record(id);
    readers_.emplace_back(record.types.size());
    kept_.emplace_back(record.types.size(), false);
    for (const Value input : record.inputs) {
      auto& readers = readers_[input.node][input.output];
      if (readers.empty() || readers.back() != id) readers.push_back(id);
    }
  }
  for (const Value value : kept) kept_[value.node][value.output] = true;
}

const std::vector<NodeId>& Uses::readers(Value value) const { return readers_[value.node][value.output]; }
bool Uses::kept(Value value) const { return kept_[value.node][value.output]; }

Region single(const Graph& graph, NodeId node) {
  const NodeRecord& record = graph.record(node);
  Region region{std::string(record.op->name()), {node}, {}, {}};
  region.inputs = record.inputs;
  for (std::uint32_t output = 0; output < record.types.size(); ++output)
    region.outputs.push_back({node, output});
  return region;
}

}  // namespace plexaura
