#pragma once

#include <vector>

#include "core/device/backend.h"

namespace plexaura::cuda {

// Returns the regions, ending at this node, of an op and a cast of its float32 result to 16 bits, if the op's
// kernel can write both results. These ops are the steps of optimizers, whose outputs precede the output of
// the cast, and normalise_image if no other node reads its result.
std::vector<Region> match_cast_behind(const Graph& graph, NodeId last, const Uses& uses);

bool is_cast_behind(const Region& region);

}  // namespace plexaura::cuda
