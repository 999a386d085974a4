#include "core/compile/rebuild.h"

namespace plexaura {

namespace {

std::optional<std::vector<Value>> as_it_is(Graph&, NodeId, const std::vector<Value>&) { return std::nullopt; }

std::vector<bool> live_nodes(const Graph& graph, std::span<const Value> roots, bool updates) {
  std::vector<bool> live(graph.size(), false);
  for (const Value root : roots) live[root.node] = true;
  // Other ranks wait for a collective op, even if no node reads its result here.
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.record(id).op->traits().collective) live[id] = true;
  if (updates)
    for (const Update& update : graph.updates()) live[update.buffer.node] = live[update.next.node] = true;
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;)
    if (live[id])
      for (const Value input : graph.record(id).inputs) live[input.node] = true;
  return live;
}

}  // namespace

PassGraph copy(const Graph& graph, std::span<const Value> roots, bool updates) {
  return rebuild(
      graph, roots, [](NodeId) { return true; }, as_it_is, updates);
}

std::vector<Value> needed(const Graph& graph, std::span<const Value> roots, bool updates) {
  const std::vector<bool> live = live_nodes(graph, roots, updates);
  std::vector<Value> values;
  for (NodeId id = 0; id < graph.size(); ++id)
    for (std::uint32_t output = 0; live[id] && output < graph.record(id).types.size(); ++output)
      values.push_back({id, output});
  return values;
}

PassGraph prune(const Graph& graph, std::span<const Value> roots, bool updates) {
  const std::vector<bool> live = live_nodes(graph, roots, updates);
  return rebuild(
      graph, roots, [&](NodeId id) { return live[id]; }, as_it_is, updates);
}

}  // namespace plexaura
