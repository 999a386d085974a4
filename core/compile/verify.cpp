#include <fmt/format.h>

#include "core/compile/passes.h"
#include "core/error.h"
#include "core/graph/print.h"

namespace plexaura {

void verify(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeRecord& record = graph.record(id);
    std::vector<TensorType> types;
    for (const Value input : record.inputs) {
      if (input.node >= id || input.output >= graph.record(input.node).types.size())
        throw InternalError(fmt::format("{} names a value that is not older", name_of(graph, id)));
      types.push_back(graph.type(input));
    }
    if (record.op->infer(types) != record.types)
      throw InternalError(fmt::format("{} has types that its op does not infer", name_of(graph, id)));
  }
  for (const Update& update : graph.updates())
    if (graph.type(update.buffer) != graph.type(update.next))
      throw InternalError(
          fmt::format("the update of {} has another type", name_of(graph, update.buffer.node)));
}

}  // namespace plexaura
