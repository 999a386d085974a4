#pragma once

#include <vector>

#include "distributed/wire/topology.h"

namespace plexaura {

// Those of this host that are stopped (SIGSTOP).
std::vector<int> stopped_ranks(const Topology& topology);

// Kills those of these ranks that are stopped on this host, so that others can go on without them, and says so. Of several
// ranks of a host that call it, the lowest that is not among them does it.
void kill_stopped(const Topology& topology, const std::vector<int>& absent);

}  // namespace plexaura
