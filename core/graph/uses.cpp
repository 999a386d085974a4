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

}  // namespace plexaura
