#include <functional>
#include <unordered_map>

#include "core/compile/rebuild.h"

namespace plexaura {

namespace {

std::size_t hash_of(const Op& op, const std::vector<Value>& inputs) {
  std::size_t hash = std::hash<std::string_view>{}(op.name()) ^ op.description().hash();
  for (const Value input : inputs)
    hash = hash * 1099511628211U + std::size_t{input.node} * 31U + input.output;
  return hash;
}

}  // namespace

PassGraph merge(const PassGraph& from) {
  // Maps a hash to the nodes of the target that have it. Nodes with the same hash are compared before they
  // are merged.
  std::unordered_multimap<std::size_t, NodeId> seen;
  const auto replace = [&](Graph& target, NodeId id,
                           const std::vector<Value>& inputs) -> std::optional<std::vector<Value>> {
    const NodeRecord& record = from.graph->record(id);
    const OpTraits traits = record.op->traits();
    if (traits.random || traits.collective) return std::nullopt;
    const std::size_t hash = hash_of(*record.op, inputs);
    const auto [first, last] = seen.equal_range(hash);
    for (auto candidate = first; candidate != last; ++candidate) {
      const NodeRecord& earlier = target.record(candidate->second);
      if (earlier.inputs != inputs || !(*earlier.op == *record.op)) continue;
      std::vector<Value> outputs;
      for (std::uint32_t output = 0; output < earlier.types.size(); ++output)
        outputs.push_back({candidate->second, output});
      return outputs;
    }
    seen.emplace(hash, static_cast<NodeId>(target.size()));
    return std::nullopt;
  };
  return rebuild(
      *from.graph, from.roots, [](NodeId) { return true; }, replace);
}

}  // namespace plexaura
