#pragma once

#include <optional>

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

struct Conv1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;   // zeros, on both sides
  std::int64_t dilation = 1;  // distance between neighbouring elements of the kernel
  // Input and output channels are divided into this many groups; each group is convolved separately.
  std::int64_t groups = 1;
  // The number of zeros at the end. If it is set, `padding` is the number at the beginning only.
  std::optional<std::int64_t> padding_end = {};
};

// Convolution along one axis: conv2d() of images with one row.
//   y[n, o, i] = bias[o] + sum over c, a of x[n, c, i stride - padding + a dilation] weights[o, c, a]
// x [N, C, L]; weights [O, C / groups, K]; bias [O] -> [N, O, OL] with
//   OL = (L + padding + padding_end - dilation (K - 1) - 1) / stride + 1, rounded down. Floating, one dtype.
PLEXAURA_API Node conv1d(Operand x, Operand weights, Conv1dOptions options = {});
PLEXAURA_API Node conv1d(Operand x, Operand weights, Operand bias, Conv1dOptions options = {});

}  // namespace plexaura
