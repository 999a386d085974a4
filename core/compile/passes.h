#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"
#include "core/graph/graph.h"

namespace plexaura {

struct ProgramOutput;

// A graph between two passes: roots are what the program must compute, besides the updates that the graph
// holds.
struct PassGraph {
  std::unique_ptr<Graph> graph;
  std::vector<Value> roots;
};

// Each pass makes a new graph; order, names, origins and streams of what stays are kept.

// A copy of everything; without the updates themselves where `updates` is false.
PLEXAURA_API PassGraph copy(const Graph& graph, std::span<const Value> roots, bool updates = true);
// What roots, updates and collective ops need; what updates need counts only where `updates` is true.
PLEXAURA_API std::vector<Value> needed(const Graph& graph, std::span<const Value> roots, bool updates = true);
// Only that.
PLEXAURA_API PassGraph prune(const Graph& graph, std::span<const Value> roots, bool updates = true);
// Structurally equal nodes (same op, every option, same inputs) become one. Random and collective ops never.
PLEXAURA_API PassGraph merge(const PassGraph& from);
// What depends on constants alone becomes a constant, computed by the kernels of `backend`; results above 1
// MiB are left alone.
PLEXAURA_API PassGraph fold(const PassGraph& from, Backend& backend);

// Throws InternalError where a graph breaks its own rules: order, types that infer does not confirm, updates
// of other types.
PLEXAURA_API void verify(const Graph& graph);
// Throws UserError for an output of another graph, a gradient of no parameter or buffer of the graph or of another
// type, a place in the tail that there is not or that does not hold it, and two outputs in one place.
void verify_outputs(const Graph& graph, std::span<const ProgramOutput> outputs);

}  // namespace plexaura
