#pragma once

#include <functional>
#include <optional>

#include "core/compile/passes.h"

namespace plexaura {

// What a pass makes of a node: the values that stand for its outputs, or nothing for "a copy".
using Replace = std::function<std::optional<std::vector<Value>>(Graph& target, NodeId node,
                                                                const std::vector<Value>& inputs)>;

// Walks `source` in order and builds the target: nodes for which keep(node) is false are left out, others are
// replaced or copied.
PassGraph rebuild(const Graph& source, std::span<const Value> roots, const std::function<bool(NodeId)>& keep,
                  const Replace& replace, bool updates = true);

// Appends an op with an origin of its own; returns all its outputs.
std::vector<Value> append_with_origin(Graph& target, std::shared_ptr<const Op> op,
                                      const std::vector<Value>& inputs, const Origin& origin);

}  // namespace plexaura
