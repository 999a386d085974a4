#include "core/ops/axes.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "core/base/error.h"
#include "core/ops/concat.h"
#include "core/ops/elementwise.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"

namespace plexaura {

namespace {

std::vector<Node> cut(const Operand& x, const std::vector<std::int64_t>& sizes, std::int64_t axis) {
  std::vector<Node> pieces;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    pieces.push_back(slice(x, {.axis = axis, .start = start, .stop = start + size}));
    start += size;
  }
  return pieces;
}

std::vector<Node> cut_evenly(const Operand& x, std::int64_t size, std::int64_t axis) {
  std::int64_t rest = x.node().shape()[axis];
  std::vector<std::int64_t> sizes;
  do {
    sizes.push_back(std::min(size, rest));
    rest -= sizes.back();
  } while (rest > 0);
  return cut(x, sizes, axis);
}

}  // namespace

Node squeeze(Operand x, std::vector<std::int64_t> axes) {
  const Shape shape = x.node().shape();
  axes = axes_of("squeeze", x, std::move(axes));
  std::vector<std::int64_t> extents;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    const bool may_go = axes.empty() || std::ranges::binary_search(axes, axis);
    if (!may_go || shape[axis] != 1) extents.push_back(shape[axis]);
  }
  return reshape(x, std::move(extents));
}

Node unsqueeze(Operand x, std::int64_t axis) {
  std::vector<std::int64_t> extents = x.node().shape().extents();
  extents.insert(extents.begin() + axis_of("unsqueeze", x, axis, x.node().shape().rank() + 1), 1);
  return reshape(x, std::move(extents));
}

Node transpose(Operand x, std::int64_t a, std::int64_t b) {
  const std::int64_t rank = x.node().shape().rank();
  std::vector<std::int64_t> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<std::size_t>(axis_of("transpose", x, a, rank))],
            axes[static_cast<std::size_t>(axis_of("transpose", x, b, rank))]);
  return permute(x, std::move(axes));
}

Node stack(std::vector<Operand> parts, std::int64_t axis) {
  if (parts.empty()) throw UserError("stack of nothing: it needs at least one part");
  const TensorType type = parts[0].node().type();
  for (const Operand& part : parts)
    require_that(part.node().type() == type, "stack", {parts[0], part},
                 "the parts must have one type and shape; cast or reshape one of them");
  axis = axis_of("stack", parts[0], axis, type.shape.rank() + 1);
  for (Operand& part : parts) part = {unsqueeze(part, axis), part.where()};
  return concat(std::move(parts), axis);
}

std::vector<Node> split(Operand x, std::int64_t size, std::int64_t axis) {
  axis = axis_of("split", x, axis, x.node().shape().rank());
  require_that(size >= 1, "split", {x}, fmt::format("the size of a piece must be 1 or more, not {}", size));
  return cut_evenly(x, size, axis);
}

std::vector<Node> split_with_sizes(Operand x, std::vector<std::int64_t> sizes, std::int64_t axis) {
  axis = axis_of("split_with_sizes", x, axis, x.node().shape().rank());
  const std::int64_t extent = x.node().shape()[axis];
  std::int64_t rest = extent;
  for (const std::int64_t size : sizes) {
    require_that(size >= 0, "split_with_sizes", {x}, fmt::format("a size must be 0 or more, not {}", size));
    if (rest >= 0) rest -= size;
  }
  require_that(rest == 0, "split_with_sizes", {x},
               fmt::format("the sizes {} must add up to {}, the extent of axis {}", fmt::join(sizes, ", "),
                           extent, axis));
  return cut(x, sizes, axis);
}

std::vector<Node> chunk(Operand x, std::int64_t count, std::int64_t axis) {
  axis = axis_of("chunk", x, axis, x.node().shape().rank());
  require_that(count >= 1, "chunk", {x},
               fmt::format("the number of pieces must be 1 or more, not {}", count));
  const std::int64_t extent = x.node().shape()[axis];
  if (extent == 0) return cut(x, std::vector<std::int64_t>(static_cast<std::size_t>(count)), axis);
  return cut_evenly(x, (extent - 1) / count + 1, axis);
}

Node tile(Operand x, std::vector<std::int64_t> repeats) {
  for (const std::int64_t count : repeats)
    require_that(count >= 0, "tile", {x}, fmt::format("a repeat must be 0 or more, not {}", count));
  std::vector<std::int64_t> extents = x.node().shape().extents();
  const std::size_t rank = std::max(extents.size(), repeats.size());
  extents.insert(extents.begin(), rank - extents.size(), 1);
  repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  std::vector<std::int64_t> apart;     // an axis of extent 1 before each axis
  std::vector<std::int64_t> repeated;  // the axes of `apart`, with the repeats
  for (std::size_t i = 0; i < rank; ++i) {
    apart.insert(apart.end(), {1, extents[i]});
    repeated.insert(repeated.end(), {repeats[i], extents[i]});
  }
  const Node copies = broadcast_to({reshape(x, std::move(apart)), x.where()}, Shape(std::move(repeated)));
  for (std::size_t i = 0; i < rank; ++i) extents[i] *= repeats[i];
  return reshape({copies, x.where()}, std::move(extents));
}

Node expand_as(Operand x, Operand like) { return broadcast_to(x, like.node().shape()); }

}  // namespace plexaura
