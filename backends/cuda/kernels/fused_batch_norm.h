#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "backends/regions/batch_norm_regions.h"

namespace plexaura::cuda {

// A region of batch norm with what the plugin's kernels compute beyond that. Backward:
//   sums: the gradient of the result is the sum of two, the second of which is the last input that is read
//   remasks: whether the relu has passed an element is found by normalising x again, with the shift as input in place of the
//     relu's result, which takes no reading of an image
struct FusedBatchNorm {
  BatchNormRegion of;
  bool sums = false;
  bool remasks = false;

  std::size_t second_grad_input() const { return of.inputs_read(); }
  std::size_t inputs_read() const { return of.inputs_read() + (sums ? 1 : 0); }
};

// By the region's kind; empty for other regions, and for a single op.
std::optional<FusedBatchNorm> fused_batch_norm(const std::string& kind);

// Those that end at this node, the larger ones first.
std::vector<Region> match_fused_batch_norm(const Graph& graph, NodeId last, const Uses& uses);

}  // namespace plexaura::cuda
