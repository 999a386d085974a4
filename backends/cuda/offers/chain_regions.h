#pragma once

#include <vector>

#include "backends/cuda/kernels/chains.h"
#include "core/device/backend.h"

// Elementwise ops that one launch computes: a chain of ops, each of which is read by the next ones alone; or several chains
// whose results are only stored, as gradients that are cast, so that nothing waits for them.

namespace plexaura::cuda {

// Those that end at this node.
std::vector<Region> match_chains(const Graph& graph, NodeId last, const Uses& uses);

bool is_chains(const Region& region);

// Of a region of match_chains(), one for each of its outputs.
std::vector<Chain> chains_of(const Graph& graph, const Region& region);

}  // namespace plexaura::cuda
