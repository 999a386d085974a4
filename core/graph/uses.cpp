#include "core/graph/uses.h"

namespace plexaura {

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

std::vector<bool> nodes_needed(const Graph& graph, std::span<const Value> values) {
  std::vector<bool> needed(graph.size(), false);
  for (const Value value : values) needed[value.node] = true;
  for (auto id = static_cast<NodeId>(graph.size()); id-- > 0;)
    if (needed[id])
      for (const Value input : graph.record(id).inputs) needed[input.node] = true;
  return needed;
}

}  // namespace plexaura
