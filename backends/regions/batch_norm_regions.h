#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/device/backend.h"

// Regions around a batch norm, which kernels of several backends compute in a few passes.

namespace plexaura {

// Describes a region around a batch norm. Forward, relu(normalise(x) + addend):
//   inputs: x, scale, shift; mean and inverse, unless the region computes these; the addend, if any
//   outputs: the result; mean, variance and inverse, if the region computes them
// Backward, the sum of the gradients of normalise and moments by x. An addend may be added between the two:
//   inputs: x, scale, mean, inverse, the gradient of the result; the result of the relu that masks it,
//     if any; the addend, if any; constants that the kernels do not read
//   outputs: the sum; the gradients of scale and shift; the masked gradient, if another node reads it
struct BatchNormRegion {
  enum class Direction : std::uint8_t { forward, backward };
  static constexpr std::size_t grad_input = 4;
  static constexpr std::size_t masked_output = 3;

  Direction direction = Direction::forward;
  bool moments = false;  // forward: true if the region computes the moments
  bool relu = false;     // forward: true if the region ends with a relu
  bool masks = false;    // backward: true if a relu masks the gradient
  bool adds = false;

  bool forward() const { return direction == Direction::forward; }
  // Backward: index of the relu's result among the inputs.
  std::size_t result_input() const { return grad_input + 1; }
  std::size_t addend_input() const;
  std::size_t inputs_read() const;  // returns the number of inputs that are read; these come first
  // Backward only: returns the output that may share the memory of the result's gradient. `region` is this
  // one, or a single normalise_grad.
  std::size_t output_in_place(const Region& region) const;
};

// Returns the region of this kind. Returns nothing for other regions and for single ops.
std::optional<BatchNormRegion> batch_norm_region(const std::string& kind);

// Returns the regions that end at this node, larger ones first.
std::vector<Region> match_batch_norm(const Graph& graph, NodeId last, const Uses& uses);

// True for ops that the kernels of batch norm compute: readers of its results, and relu's mask of its
// gradient. Other regions must not contain them.
bool belongs_to_batch_norm(const Graph& graph, NodeId node, const Uses& uses);

}  // namespace plexaura
