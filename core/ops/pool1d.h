#pragma once

#include <optional>

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

struct MaxPool1dOptions {
  std::int64_t kernel = 1;
  std::optional<std::int64_t> stride = {};  // distance between windows; by default the size of the kernel
  std::int64_t padding =
      0;  // at most half the kernel; an element of the padding is never chosen as the largest
  bool ceil_mode = false;  // true: a last window that begins before the end padding may reach beyond it
};

// max_pool2d() of images with one row: x [N, C, L], L not 0 -> [N, C, OL] with OL = (L + 2 padding - kernel) / stride
// + 1, rounded down, or up in ceil mode. Floating.
PLEXAURA_API Node max_pool1d(Operand x, MaxPool1dOptions options);

struct AvgPool1dOptions {
  std::int64_t kernel = 1;
  std::optional<std::int64_t> stride = {};  // distance between windows; by default the size of the kernel
  std::int64_t padding = 0;                 // zeros, at most half the kernel
  // The sum is divided by the number of the window's elements that lie in the input. True: also counts
  // elements in the padding.
  bool count_include_pad = true;
  bool ceil_mode = false;  // true: a last window that begins before the end padding may reach beyond it
};

// avg_pool2d() of images with one row. Shapes as for max_pool1d().
PLEXAURA_API Node avg_pool1d(Operand x, AvgPool1dOptions options);

}  // namespace plexaura
