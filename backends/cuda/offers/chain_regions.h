#pragma once

#include <vector>

#include "backends/cuda/kernels/chains.h"
#include "core/device/backend.h"

// Regions of elementwise ops that one launch computes. A region is a chain of ops, each of which is read only
// by later ones of the chain, or several chains whose results are only stored, such as gradients that are
// cast, so that no op waits for them.

namespace plexaura::cuda {

// Returns the regions that end at this node.
std::vector<Region> match_chains(const Graph& graph, NodeId last, const Uses& uses);

bool is_chains(const Region& region);

// Returns the chains of a region of match_chains(), one for each of its outputs.
std::vector<Chain> chains_of(const Graph& graph, const Region& region);

}  // namespace plexaura::cuda
