#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/device/backend.h"

// Regions around a batch norm, which kernels of several backends compute in a few passes.

namespace plexaura {

// What such a region is. Forward, relu(normalise(x) + addend):
//   inputs: x, scale, shift; mean and inverse, unless it makes the moments of x itself; the addend, if any
//   outputs: the result; mean, variance and inverse, if it makes them
// Backward, the sum of the gradients of normalise and moments by x, to which an addend may be added in between:
//   inputs: x, scale, mean, inverse, the gradient of the result; the result of the relu that masks it, if any; the
//   addend, if any; constants that nobody reads
//   outputs: the sum; the gradients of scale and shift; the masked gradient, where somebody else reads it
struct BatchNormRegion {
  enum class Direction : std::uint8_t { forward, backward };
  static constexpr std::size_t grad_input = 4;
  static constexpr std::size_t masked_output = 3;

  Direction direction = Direction::forward;
  bool moments = false;  // forward: it makes them
  bool relu = false;     // forward
  bool masks = false;    // backward
  bool adds = false;

  bool forward() const { return direction == Direction::forward; }
  std::size_t result_input() const { return grad_input + 1; }  // backward, of the relu
  std::size_t addend_input() const;
  std::size_t inputs_read() const;  // the first so many
  // Backward: the output that may lie where the gradient of the result lies. `region` is this one, or a normalise_grad.
  std::size_t output_in_place(const Region& region) const;
};

// By the region's kind; empty for other regions, and for a single op.
std::optional<BatchNormRegion> batch_norm_region(const std::string& kind);

// Those that end at this node, the larger ones first.
std::vector<Region> match_batch_norm(const Graph& graph, NodeId last, const Uses& uses);

}  // namespace plexaura
