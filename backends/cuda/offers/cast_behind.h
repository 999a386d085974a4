#pragma once

#include <vector>

#include "core/device/backend.h"

namespace plexaura::cuda {

// Ops with a cast of their float32 result to 16 bits, which their kernels write as well: the step of an optimizer, whose outputs
// come before that of the cast, and normalise_image, whose result nobody else reads. Those that end at this node.
std::vector<Region> match_cast_behind(const Graph& graph, NodeId last, const Uses& uses);

bool is_cast_behind(const Region& region);

}  // namespace plexaura::cuda
