#pragma once

#include <vector>

#include "core/device/backend.h"

namespace plexaura::far_device {

// Finds regions of two nodes for tests: an addition, and the product or convolution gradient that computes
// one of its operands. The kernel is that of any region, and is not fast.
std::vector<Region> match_sums(const Graph& graph, NodeId last, const Uses& uses);

}  // namespace plexaura::far_device
