#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "backends/regions/batch_norm_regions.h"

namespace plexaura::cuda {

// A region of batch norm, with two extensions that only the plugin's kernels compute, both for the backward
// pass:
//   sums     the gradient of the result is the sum of two; the second one is the last input that is read
//   remasks  the kernel normalises x again to find which elements the relu has passed; its input is then the
//            shift instead of the relu's result, so that it reads one image less
struct FusedBatchNorm {
  BatchNormRegion of;
  bool sums = false;
  bool remasks = false;

  std::size_t second_grad_input() const { return of.inputs_read(); }
  std::size_t inputs_read() const { return of.inputs_read() + (sums ? 1 : 0); }
};

// Returns the region of this kind. Returns nothing for other regions and for single ops.
std::optional<FusedBatchNorm> fused_batch_norm(const std::string& kind);

// Returns the regions that end at this node, larger ones first.
std::vector<Region> match_fused_batch_norm(const Graph& graph, NodeId last, const Uses& uses);

}  // namespace plexaura::cuda
