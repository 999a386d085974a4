#pragma once

#include <vector>

#include "core/device/backend.h"

namespace plexaura::far_device {

// Regions of two nodes for the tests of regions: an addition and what computes one of its operands, if that
// is a product or the gradient of a convolution. Nothing about them is fast; their kernel is that of any
// region.
std::vector<Region> match_sums(const Graph& graph, NodeId last, const Uses& uses);

}  // namespace plexaura::far_device
