#include "core/ops/subscript.h"

#include <fmt/format.h>

#include "core/ops/elementwise.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"

namespace plexaura {

namespace {

SliceOptions single(std::int64_t index, std::int64_t axis, const Operand& x) {
  const std::int64_t extent = x.node().shape()[axis];
  require_that(index >= -extent && index < extent, "[]", {x},
               fmt::format("axis {} has {} elements, and none with the index {}", axis, extent, index));
  const std::int64_t from_front = index < 0 ? index + extent : index;
  return {.axis = axis, .start = from_front, .stop = from_front + 1};
}

}  // namespace

Node Node::operator[](const Subscript& at) const {
  const std::int64_t rank = shape().rank();
  require_that(
      std::ssize(at.axes) <= rank, "[]", {{*this, at.where}},
      fmt::format("there are {} indices for {} axes; give one for each axis at most", at.axes.size(), rank));
  Node part = *this;
  std::vector<std::int64_t> extents;
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const Operand x{part, at.where};
    const auto position = static_cast<std::size_t>(axis);
    if (position >= at.axes.size()) {
      extents.push_back(part.shape()[axis]);
    } else if (const auto* index = std::get_if<std::int64_t>(&at.axes[position].selected)) {
      part = plexaura::slice(x, single(*index, axis, x));
    } else {
      const IndexRange& range = std::get<IndexRange>(at.axes[position].selected);
      part = plexaura::slice(x, {.axis = axis, .start = range.start, .stop = range.stop, .step = range.step});
      extents.push_back(part.shape()[axis]);
    }
  }
  return std::ssize(extents) == rank ? part : reshape({part, at.where}, std::move(extents));
}

}  // namespace plexaura
