#include "core/ops/arrange.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/concat.h"
#include "core/ops/constants.h"
#include "core/ops/elementwise.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"

namespace plexaura {

namespace {

Node rolled(const Node& x, std::int64_t axis, std::int64_t shift) {
  const std::int64_t extent = x.shape()[axis];
  if (extent == 0 || shift % extent == 0) return x;
  const std::int64_t towards_end = (shift % extent + extent) % extent;
  const std::int64_t cut = extent - towards_end;
  return concat({slice(x, {.axis = axis, .start = cut}), slice(x, {.axis = axis, .stop = cut})}, axis);
}

void require_width(const Operand& x, const AxisPadding& width, PadMode mode) {
  const std::int64_t extent = x.node().shape()[width.axis];
  const std::int64_t larger = std::max(width.before, width.after);
  require_that(
      std::min(width.before, width.after) >= 0, "pad", {x},
      fmt::format("the elements to add along axis {} must be 0 or more; remove elements with slice()",
                  width.axis));
  if (mode == PadMode::constant || larger == 0) return;
  static constexpr std::array<std::string_view, 4> names{"constant", "reflect", "replicate", "circular"};
  const auto refuse_above = [&](std::int64_t most) {
    require_that(
        larger <= most, "pad", {x},
        fmt::format("{} can add at most {} elements at an end of axis {}, not {}; pad in several calls",
                    names.at(static_cast<std::size_t>(mode)), most, width.axis, larger));
  };
  if (mode == PadMode::reflect) refuse_above(std::max<std::int64_t>(extent - 1, 0));
  if (mode == PadMode::circular) refuse_above(extent);
  require_that(extent > 0, "pad", {x},
               fmt::format("axis {} is empty and has no element to replicate", width.axis));
}

// `count` elements that continue x at one end of the axis.
Node continued(const Node& x, std::int64_t axis, std::int64_t count, bool at_start,
               const PadOptions& options) {
  const std::int64_t extent = x.shape()[axis];
  std::vector<std::int64_t> extents = x.shape().extents();
  extents[static_cast<std::size_t>(axis)] = count;
  const auto part = [&](std::int64_t start) {
    return slice(x, {.axis = axis, .start = start, .stop = start + count});
  };
  switch (options.mode) {
    case PadMode::reflect:
      return slice(part(at_start ? 1 : extent - 1 - count), {.axis = axis, .step = -1});
    case PadMode::replicate:
      return broadcast_to(
          slice(x, {.axis = axis, .start = at_start ? 0 : extent - 1, .stop = at_start ? 1 : extent}),
          Shape(std::move(extents)));
    case PadMode::circular:
      return part(at_start ? extent - count : 0);
    case PadMode::constant:
      break;
  }
  return broadcast_to(Operand(options.value).node_like(x), Shape(std::move(extents)));
}

Node padded_along(const Node& x, const AxisPadding& width, const PadOptions& options) {
  std::vector<Operand> parts;
  if (width.before > 0) parts.emplace_back(continued(x, width.axis, width.before, true, options));
  parts.emplace_back(x);
  if (width.after > 0) parts.emplace_back(continued(x, width.axis, width.after, false, options));
  return parts.size() == 1 ? x : concat(std::move(parts), width.axis);
}

// Returns x with 0 in place of the elements for which keeps(row + diagonal, column) is false.
Node triangle(std::string_view builder, const Operand& operand, std::int64_t diagonal,
              Node (*keeps)(Operand row, Operand column)) {
  const Node x = operand.node();
  const std::int64_t rank = x.shape().rank();
  require_that(rank >= 2, builder, {operand}, "needs two axes, rows and columns; reshape the operand");
  const auto guard = origin_of_caller(operand);
  const std::int64_t rows = x.shape()[rank - 2];
  const std::int64_t columns = x.shape()[rank - 1];
  const std::int64_t offset = std::clamp(diagonal, -rows, columns);
  const Node row = reshape(iota(x.graph(), rows), {rows, 1}) + offset;
  return where(keeps(row, iota(x.graph(), columns)), x, 0);
}

}  // namespace

Node flip(Operand x, std::vector<std::int64_t> axes) {
  axes = axes_of("flip", x, std::move(axes));
  const auto guard = origin_of_caller(x);
  Node result = x.node();
  for (std::int64_t axis = 0; axis < result.shape().rank(); ++axis)
    if (axes.empty() || std::ranges::binary_search(axes, axis))
      result = slice(result, {.axis = axis, .step = -1});
  return result;
}

Node roll(Operand x, std::vector<std::int64_t> shifts, std::vector<std::int64_t> axes) {
  const bool is_flat = axes.empty();
  require_that(shifts.size() == (is_flat ? 1 : axes.size()), "roll", {x},
               is_flat ? "needs exactly one shift if no axes are named" : "needs one shift for each axis");
  const auto guard = origin_of_caller(x);
  Node result = x.node();
  const std::vector<std::int64_t> extents = result.shape().extents();
  if (is_flat) return reshape(rolled(reshape(result, {result.shape().elements()}), 0, shifts[0]), extents);
  for (std::size_t i = 0; i < axes.size(); ++i)
    result = rolled(result, axis_of("roll", x, axes[i], result.shape().rank()), shifts[i]);
  return result;
}

Node pad(Operand x, const std::vector<AxisPadding>& widths, PadOptions options) {
  require_that(options.mode == PadMode::constant || options.value == 0, "pad", {x},
               "a value has no effect unless the mode is constant; leave it out");
  std::vector<std::int64_t> axes;
  for (const AxisPadding& width : widths) axes.push_back(width.axis);
  axes_of("pad", x, std::move(axes));
  const auto guard = origin_of_caller(x);
  Node result = x.node();
  for (AxisPadding width : widths) {
    width.axis = axis_of("pad", x, width.axis, result.shape().rank());
    require_width(x, width, options.mode);
    result = padded_along(result, width, options);
  }
  return result;
}

Node triu(Operand x, std::int64_t diagonal) { return triangle("triu", x, diagonal, le); }
Node tril(Operand x, std::int64_t diagonal) { return triangle("tril", x, diagonal, ge); }

Node diagonal(Operand x, std::int64_t offset, std::int64_t row_axis, std::int64_t column_axis) {
  const Node node = x.node();
  const std::int64_t rank = node.shape().rank();
  const std::int64_t row = axis_of("diagonal", x, row_axis, rank);
  const std::int64_t column = axis_of("diagonal", x, column_axis, rank);
  require_that(row != column, "diagonal", {x}, "rows and columns must be two different axes");
  const auto guard = origin_of_caller(x);
  std::vector<std::int64_t> order;
  std::vector<std::int64_t> extents;
  for (std::int64_t axis = 0; axis < rank; ++axis)
    if (axis != row && axis != column) {
      order.push_back(axis);
      extents.push_back(node.shape()[axis]);
    }
  order.insert(order.end(), {row, column});
  const std::int64_t rows = node.shape()[row];
  const std::int64_t columns = node.shape()[column];
  extents.push_back(rows * columns);
  const std::int64_t across = std::clamp(offset, -rows, columns);
  const std::int64_t count = std::max<std::int64_t>(
      0, std::min(rows + std::min<std::int64_t>(across, 0), columns - std::max<std::int64_t>(across, 0)));
  const std::int64_t first = across < 0 ? -across * columns : across;
  const Node flat = reshape(permute(node, std::move(order)), std::move(extents));
  return slice(flat, {.axis = -1,
                      .start = first,
                      .stop = first + count * (columns + 1) - (count > 0 ? columns : 0),
                      .step = columns + 1});
}

}  // namespace plexaura
