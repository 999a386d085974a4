#pragma once

#include <algorithm>
#include <vector>

#include "core/loops/loops.h"

namespace plexaura::portable {

// The axes of a value, divided into axes that are kept and axes that are reduced.
struct Parts {
  StridedWalk<1> kept;
  StridedWalk<1> reduced;
};

inline Parts part(const Shape& shape, const std::vector<std::int64_t>& axes) {
  const auto goes = [&](std::int64_t axis) { return std::ranges::find(axes, axis) != axes.end(); };
  std::int64_t kept_elements = 1;
  std::int64_t reduced_elements = 1;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis)
    (goes(axis) ? reduced_elements : kept_elements) *= shape[axis];
  Parts parts{StridedWalk<1>(kept_elements), StridedWalk<1>(reduced_elements)};
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis)
    (goes(axis) ? parts.reduced : parts.kept).add_axis(shape[axis], {stride_of(shape, axis)});
  return parts;
}

}  // namespace plexaura::portable
