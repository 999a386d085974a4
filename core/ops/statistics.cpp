#include "core/ops/statistics.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>

#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/logic.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The axes of a reduction, sorted and not negative, and the shapes of its result.
struct ReducedAxes {
  std::vector<std::int64_t> axes;
  Shape kept;              // reduced axes have extent 1
  Shape result;            // the shape that the caller gets
  std::int64_t count = 1;  // number of elements that are reduced to one
};

ReducedAxes reduction_of(std::string_view builder, const Operand& x, const ReduceOptions& options) {
  const Shape& shape = x.node().shape();
  ReducedAxes reduction{axes_of(builder, x, options.axes), {}, {}};
  std::vector<std::int64_t>& axes = reduction.axes;
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(shape.rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  std::vector<std::int64_t> kept = shape.extents();
  std::vector<std::int64_t> result;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    const bool goes = std::ranges::binary_search(axes, axis);
    if (goes) reduction.count *= shape[axis];
    if (goes) kept[static_cast<std::size_t>(axis)] = 1;
    if (!goes || options.keepdims) result.push_back(kept[static_cast<std::size_t>(axis)]);
  }
  reduction.kept = Shape(std::move(kept));
  reduction.result = Shape(std::move(result));
  return reduction;
}

Node filled(const Operand& x, const Shape& shape, double value) {
  const Node node = x.node();
  return broadcast_to({Operand(value, x.where()).node_like(node), x.where()}, shape);
}

Node widened(const Operand& x) {
  const Node node = x.node();
  return is_floating(node.dtype()) && size_of(node.dtype()) == 2 ? cast(x, DType::float32) : node;
}

// Converts y, which was computed in the dtype of widened(x), to the shape and dtype that the caller gets.
Node finished(const Node& y, const Operand& x, const ReducedAxes& of) {
  const Node shaped = y.shape() == of.result ? y : reshape({y, x.where()}, of.result.extents());
  return cast({shaped, x.where()}, x.node().dtype());
}

// The square root. Where x is 0, its gradient is 1 and not infinite, so that a gradient of 0 of x itself stays 0.
Node flat_sqrt(const Node& x) {
  const Node is_zero = eq(x, 0);
  return where(is_zero, x, sqrt(where(is_zero, 1, x)));
}

// Multiplies the first half of the axis by the second half until one element is left. If an extent is odd, its last
// element is multiplied in at the end.
Node product_along(Node x, std::int64_t axis) {
  Node rest;
  while (x.shape()[axis] > 1) {
    const std::int64_t half = x.shape()[axis] / 2;
    if (x.shape()[axis] % 2 == 1) {
      const Node last = slice(x, {.axis = axis, .start = 2 * half});
      rest = rest.is_empty() ? last : rest * last;
    }
    x = slice(x, {.axis = axis, .stop = half}) * slice(x, {.axis = axis, .start = half, .stop = 2 * half});
  }
  return rest.is_empty() ? x : x * rest;
}

ReduceOptions kept_axes(const ReducedAxes& of) { return {.axes = of.axes, .keepdims = true}; }

Node variance_of(std::string_view builder, const Operand& x, const VarianceOptions& options, bool root) {
  require_floating_operand(builder, x);
  const ReducedAxes of = reduction_of(builder, x, {options.axes, options.keepdims});
  const double divisor = static_cast<double>(of.count) - options.correction;
  require_that(divisor > 0, builder, {x},
               fmt::format("{} elements are too few for a correction of {}; pass a smaller correction",
                           of.count, options.correction));
  const Node wide = widened(x);
  const auto at = x.where();
  const Node squares = square({sub({wide, at}, {mean({wide, at}, kept_axes(of)), at}), at});
  const Node variance = div({sum({squares, at}, kept_axes(of)), at}, {divisor, at});
  return finished(root ? flat_sqrt(variance) : variance, x, of);
}

// The p-th root of the sum of size^p, for a finite p other than 0.
Node root_of_powers(const Node& size, double p, const ReducedAxes& of) {
  if (p == 1) return sum(size, kept_axes(of));
  if (p == 2) return flat_sqrt(sum(square(size), kept_axes(of)));
  const Node total = sum(pow(size, p), kept_axes(of));
  const Node is_zero = eq(total, 0);
  return where(is_zero, p > 0 ? 0 : infinity, pow(where(is_zero, 1, total), 1 / p));
}

// Computes any() and all(): casts the truth values to numbers and takes their maximum or minimum with `choose`. The
// result is `of_nothing` if there are no elements.
Node truth_of(std::string_view builder, const Operand& x, const ReduceOptions& options, bool of_nothing,
              Node (*choose)(Operand, ReduceOptions)) {
  const ReducedAxes of = reduction_of(builder, x, options);
  const auto at = x.where();
  const Node truths = cast(x, DType::boolean);
  if (of.count == 0) return filled({truths, at}, of.result, of_nothing ? 1 : 0);
  const Node numbers = cast({truths, at}, DType::int32);
  return cast({reshape({choose({numbers, at}, kept_axes(of)), at}, of.result.extents()), at}, DType::boolean);
}

}  // namespace

Node prod(Operand x, ReduceOptions options) {
  require_that(x.node().dtype() != DType::boolean, "prod", {x},
               "is defined for numbers, not for bool; use all()");
  const ReducedAxes of = reduction_of("prod", x, options);
  if (of.count == 0) return filled(x, of.result, 1);
  const Graph::WithOrigin guard = origin_of_caller(x);
  Node product = widened(x);
  for (const std::int64_t axis : of.axes) product = product_along(product, axis);
  return finished(product, x, of);
}

Node var(Operand x, VarianceOptions options) { return variance_of("var", x, options, false); }
Node std_dev(Operand x, VarianceOptions options) { return variance_of("std_dev", x, options, true); }

Node logsumexp(Operand x, ReduceOptions options) {
  require_floating_operand("logsumexp", x);
  const ReducedAxes of = reduction_of("logsumexp", x, options);
  if (of.count == 0) return filled(x, of.result, -infinity);
  const auto at = x.where();
  const Node wide = widened(x);
  const Node largest = stop_gradient({max({wide, at}, kept_axes(of)), at});
  const Node shift = where({is_finite({largest, at}), at}, {largest, at}, {0, at});
  const Node total = sum({exp({sub({wide, at}, {shift, at}), at}), at}, kept_axes(of));
  const Node is_zero = eq({total, at}, {0, at});
  const Node logarithm = log({where({is_zero, at}, {1, at}, {total, at}), at});
  const Node y = add({logarithm, at}, {shift, at});
  return finished(where({is_zero, at}, {-infinity, at}, {y, at}), x, of);
}

Node norm(Operand x, NormOptions options) {
  require_floating_operand("norm", x);
  require_that(!std::isnan(options.p), "norm", {x}, "p must be a number or infinite, not nan");
  const ReducedAxes of = reduction_of("norm", x, {options.axes, options.keepdims});
  const bool chooses = std::isinf(options.p);
  require_that(!chooses || of.count > 0, "norm", {x},
               "an axis is empty, and has no largest or smallest element");
  const Graph::WithOrigin guard = origin_of_caller(x);
  const Node wide = widened(x);
  if (options.p == 0) return finished(sum(cast(ne(wide, 0), wide.dtype()), kept_axes(of)), x, of);
  const Node size = abs(wide);
  if (chooses) return finished(options.p > 0 ? max(size, kept_axes(of)) : min(size, kept_axes(of)), x, of);
  return finished(root_of_powers(size, options.p, of), x, of);
}

Node argmin(Operand x, std::int64_t axis, bool keepdims) {
  const DType dtype = x.node().dtype();
  require_that(dtype != DType::boolean, "argmin", {x}, "is defined for numbers, not for bool; use cast()");
  const Node reversed = is_floating(dtype) ? neg(x) : bitwise_not(x);
  return argmax({reversed, x.where()}, axis, keepdims);
}

Node any(Operand x, ReduceOptions options) { return truth_of("any", x, options, false, max); }
Node all(Operand x, ReduceOptions options) { return truth_of("all", x, options, true, min); }

}  // namespace plexaura
