#include "core/compile/rebuild.h"
#include "core/graph/uses.h"

namespace plexaura {

namespace {

std::optional<std::vector<Value>> as_it_is(Graph&, NodeId, const std::vector<Value>&) { return std::nullopt; }

std::vector<bool> live_nodes(const Graph& graph, std::span<const Value> roots, bool updates) {
  std::vector<Value> ends(roots.begin(), roots.end());
  // Other ranks wait for a collective op, even if no node reads its result here.
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.record(id).op->traits().collective) ends.push_back({id, 0});
  if (updates)
    for (const Update& update : graph.updates()) ends.insert(ends.end(), {update.buffer, update.next});
  return nodes_needed(graph, ends);
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
