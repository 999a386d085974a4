#pragma once

#include <cstdint>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// Returns a hash of what a graph computes: ops with all options, constants by their contents, types,
// connections, and updates. The places where nodes were written do not count. The hash is the same on every
// machine.
PLEXAURA_API std::uint64_t structure_hash(const Graph& graph);

}  // namespace plexaura
