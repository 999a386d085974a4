#pragma once

#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// Divides a graph into regions, which one kernel each will compute, and returns them in an order in which
// they can run. Takes first the regions of the backend that save the most time compared with their nodes one
// by one, by the estimates of the best candidates. A region is not taken if it has no candidate, if a node
// outside it reads one of its inner values, if it would close a cycle, or if it is slower than its nodes. All
// remaining nodes become regions of one op. Leaves belong to no region. If `fuse` is false, all regions are
// single ops.
PLEXAURA_API std::vector<Region> select_regions(const Graph& graph, std::span<const Value> kept,
                                                const Backend& backend, bool fuse);

}  // namespace plexaura
