#include "core/graph/uses.h"

#include <algorithm>

#include "core/graph/leaf.h"

namespace plexaura {

namespace {

bool changes_in_each_run(const Op& op) {
  if (op.traits().random) return true;
  const Leaf* leaf = as_leaf(op);
  return leaf != nullptr && (leaf->kind() == LeafKind::input || leaf->kind() == LeafKind::step_scalar ||
                             leaf->kind() == LeafKind::arena_slice);
}

}  // namespace

Uses::Uses(const Graph& graph, std::span<const Value> kept) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeRecord& record = graph.record(id);
    readers_.emplace_back(record.types.size());
    kept_.emplace_back(record.types.size(), false);
    const auto is_fed = [&](Value input) { return fed_[input.node]; };
    fed_.push_back(changes_in_each_run(*record.op) || std::ranges::any_of(record.inputs, is_fed));
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
