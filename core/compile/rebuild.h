#pragma once

#include <functional>
#include <optional>

#include "core/compile/passes.h"
#include "core/graph/subgraph.h"

namespace plexaura {

// Decides what becomes of a node in a new graph. Returns the values in `target` that replace its outputs, or
// nothing if the node is to be copied. `inputs` are the node's inputs in `target`.
using Replace = std::function<std::optional<std::vector<Value>>(Graph& target, NodeId node,
                                                                const std::vector<Value>& inputs)>;

// Walks `source` in order and builds a new graph. Nodes for which keep(node) is false are left out. The
// others are replaced or copied, as `replace` decides.
PassGraph rebuild(const Graph& source, std::span<const Value> roots, const std::function<bool(NodeId)>& keep,
                  const Replace& replace, bool updates = true);

}  // namespace plexaura
