#pragma once

#include <functional>

#include "tests/support/reference/access.h"

namespace plexaura::testing::reference {

// The window at one place along one axis: the elements [begin, end) of the input. `size` is its extent in a mean that
// counts the padding.
struct WindowAlongAxis {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t size;
};

// The windows at all places along an axis.
using WindowsAlongAxis = std::vector<WindowAlongAxis>;

// The sizes of a pool over any number of axes: one number for each axis.
struct Pool {
  Index kernel;
  Index stride;
  Index padding;
  bool ceil_mode = false;
};

// The windows along each axis of x [N, C, ...] after N and C.
std::vector<WindowsAlongAxis> windows_of(const Shape& x, const Pool& pool);
std::vector<WindowsAlongAxis> adaptive_windows(const Shape& x, const Index& output);

// Each result is `of` the elements in a window, row by row, and the size of the window in a mean that counts the
// padding.
Tensor pooled(const Tensor& x, const std::vector<WindowsAlongAxis>& windows,
              const std::function<double(const std::vector<double>& elements, double size)>& of);

}  // namespace plexaura::testing::reference
