#pragma once

#include <cstdint>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// A hash of what a graph computes: ops with all their options, constants by their contents, types, what reads
// what, and updates; not of where it was written. The same on every machine.
PLEXAURA_API std::uint64_t structure_hash(const Graph& graph);

}  // namespace plexaura
