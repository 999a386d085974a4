#pragma once

#include <span>

#include "core/compile/passes.h"

namespace plexaura::onnx {

// Returns the part of a graph that the roots need, in which each loop is replaced by the nodes of all of its steps.
// Throws UserError for a loop that would become more than 100,000 nodes.
PassGraph unroll(const Graph& graph, std::span<const Value> roots);

}  // namespace plexaura::onnx
