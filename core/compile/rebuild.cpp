#include "core/compile/rebuild.h"

namespace plexaura {

PassGraph rebuild(const Graph& source, std::span<const Value> roots, const std::function<bool(NodeId)>& keep,
                  const Replace& replace, bool updates) {
  PassGraph result{std::make_unique<Graph>(source.mode()), {}};
  std::vector<std::vector<Value>> outputs_of(source.size());
  const auto mapped = [&](Value value) { return outputs_of[value.node][value.output]; };
  for (NodeId id = 0; id < source.size(); ++id) {
    if (!keep(id)) continue;
    const NodeRecord& record = source.record(id);
    std::vector<Value> inputs;
    for (const Value input : record.inputs) inputs.push_back(mapped(input));
    auto replacement = replace(*result.graph, id, inputs);
    outputs_of[id] = replacement ? std::move(*replacement)
                                 : append_with_origin(*result.graph, record.op, inputs, record.origin);
  }
  for (const Value root : roots) result.roots.push_back(mapped(root));
  if (!updates) return result;
  for (const Update& update : source.updates())
    result.graph->update(Node(*result.graph, mapped(update.buffer)),
                         Node(*result.graph, mapped(update.next)));
  return result;
}

}  // namespace plexaura
