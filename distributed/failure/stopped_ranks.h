#pragma once

#include <vector>

#include "distributed/wire/topology.h"

namespace plexaura {

// Returns the ranks of this host that are stopped (SIGSTOP).
std::vector<int> stopped_ranks(const Topology& topology);

// Kills those of the `absent` ranks that are stopped on this host, so that other ranks can continue without
// them, and prints that. If several ranks of a host call it, only the lowest living rank that is not in
// `absent` does so.
void kill_stopped(const Topology& topology, const std::vector<int>& absent);

}  // namespace plexaura
