#pragma once

#include <cstdint>
#include <vector>

#include "onnx/ops/call.h"

#include "core/ops/window.h"

namespace plexaura::onnx {

// The movement of a window over the axes of x [N, C, ...] after the first two, with one number for each of these axes.
struct WindowAttributes {
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> before;  // padding at the start of an axis
  std::vector<std::int64_t> after;   // padding at the end of an axis
  std::string auto_pad;

  bool is_symmetric() const { return before == after; }
};

// Reads the attributes of a window. `kernel` holds the extents of the weights, for ops that have them; otherwise it is
// empty. The padding of SAME_UPPER and SAME_LOWER is computed from x, unless `is_transposed`.
WindowAttributes read_window(Call& call, std::vector<std::int64_t> kernel, bool is_transposed = false);

// Returns the numbers of a window that moves over two axes.
inline Size2d size_2d(const std::vector<std::int64_t>& numbers) { return {numbers[0], numbers[1]}; }

// Convolves x with the weights, by the attributes of the node. The bias may be empty.
Node convolve(Call& call, const Node& x, const Node& weights, const Node& bias);

}  // namespace plexaura::onnx
