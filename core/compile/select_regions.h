#pragma once

#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// Cuts a graph into the regions that one kernel each will compute, in an order in which they can run. Of the
// regions that the backend offers, those that save most time against their nodes one by one are taken first,
// by the estimates of the best candidates; a region without a candidate, or whose inner values somebody else
// reads, or that closes a cycle, or that would take longer than its nodes, is left. What remains are single
// ops. Leaves belong to no region. Without `fuse` all regions are single ops.
PLEXAURA_API std::vector<Region> select_regions(const Graph& graph, std::span<const Value> kept,
                                                const Backend& backend, bool fuse);

}  // namespace plexaura
