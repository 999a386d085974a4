#pragma once

#include <span>
#include <vector>

#include "core/device/backend.h"
#include "core/export.h"

namespace plexaura {

// Cuts a graph into the regions that one kernel each will compute, in an order in which they can run. Walks
// the nodes from last to first and takes the largest region that the backend offers there, whose inner values
// nobody else reads and which closes no cycle; else the single op. Leaves belong to no region. Without `fuse`
// all regions are single ops.
PLEXAURA_API std::vector<Region> select_regions(const Graph& graph, std::span<const Value> kept,
                                                const Backend& backend, bool fuse);

}  // namespace plexaura
