#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"
#include "core/graph/graph.h"

namespace plexaura {

struct ProgramOutput;

// A graph between two passes. The program must compute the roots and the updates that the graph contains.
struct PassGraph {
  std::unique_ptr<Graph> graph;
  std::vector<Value> roots;
};

// Each pass returns a new graph. The nodes that remain keep their order, names and origins, and draw the same
// random numbers.

// Copies all nodes. Copies the updates too if `updates` is true.
PLEXAURA_API PassGraph copy(const Graph& graph, std::span<const Value> roots, bool updates = true);
// Returns the values that roots and collective ops need, and those that updates need if `updates` is true.
PLEXAURA_API std::vector<Value> needed(const Graph& graph, std::span<const Value> roots, bool updates = true);
// Copies only the nodes of the values that needed() returns.
PLEXAURA_API PassGraph prune(const Graph& graph, std::span<const Value> roots, bool updates = true);
// Merges equal nodes into one: the same op, options and inputs. Random and collective ops are never merged.
PLEXAURA_API PassGraph merge(const PassGraph& from);
// Replaces nodes that depend only on constants by constants. Kernels of `backend` compute them. Random and collective
// ops, ops for which `backend` has no kernel with an estimate, and results above 1 MiB stay.
PLEXAURA_API PassGraph fold(const PassGraph& from, Backend& backend);
// Copies the nodes that `backend` wants to be computed twice (see Backend::repeats). The copies come right before the
// first node that reads them. Returns nothing if there are none.
PLEXAURA_API std::optional<PassGraph> repeat(const PassGraph& from, const Backend& backend);

// Throws InternalError if a graph breaks its own rules: an input comes after its reader, a type differs from
// what the op infers, or an update has another type than its buffer.
PLEXAURA_API void verify(const Graph& graph);
// Throws UserError for a value of the body of a scan that is used outside of the scan.
void verify_no_operands(const Graph& graph);
// Throws UserError for an output of another graph; for a gradient whose parameter or buffer the graph does
// not have, or has with another type; for a slot of the tail that does not exist or cannot hold the value;
// and for two outputs in one place, or one output in two.
void verify_outputs(const Graph& graph, std::span<const ProgramOutput> outputs);

}  // namespace plexaura
