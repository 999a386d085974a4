#include "core/ops/ordering.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "core/graph/graph.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/indexing.h"
#include "core/ops/logic.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// The first `count` indices of the order along an axis, which counts from the front.
Node ordered_indices(const Node& x, std::int64_t axis, const ArgSortOptions& options) {
  const std::int64_t last = x.shape().rank() - 1;
  const auto op = std::make_shared<ArgSort>(options);
  if (axis == last) return apply(op, {x});
  return transpose(apply(op, {transpose(x, axis, last)}), axis, last);
}

ValuesAndIndices taken_at(const Node& x, const Node& indices, std::int64_t axis) {
  return {take_along_axis(x, indices, axis), indices};
}

ValuesAndIndices squeezed(const ValuesAndIndices& found, std::int64_t axis, bool keepdims) {
  if (keepdims) return found;
  return {squeeze(found.values, {axis}), squeeze(found.indices, {axis})};
}

// The place of the k-th smallest element, with the axis.
Node kth_place(const Node& x, std::int64_t k, std::int64_t axis) {
  return slice(ordered_indices(x, axis, {.count = k}), {.axis = axis, .start = k - 1});
}

void require_not_empty(std::string_view builder, const Operand& x, std::int64_t axis) {
  require_that(x.node().shape()[axis] > 0, builder, {x}, fmt::format("axis {} is empty", axis));
}

// The axis of a builder, and a guard that gives new nodes the line of its caller as their origin.
struct OrderedAxis {
  OrderedAxis(std::string_view builder, const Operand& x, std::int64_t axis)
      : from_front(axis_of(builder, x, axis, x.node().shape().rank())), guard(origin_of_caller(x)) {}
  std::int64_t from_front;
  Graph::WithOrigin guard;
};

struct Neighbours {
  std::int64_t lower = 0;
  std::int64_t higher = 0;
  double fraction = 0;  // share of the way from the lower to the higher element
};

Neighbours neighbours_of(double place, Interpolation interpolation) {
  const double lower = std::floor(place);
  const auto below = static_cast<std::int64_t>(lower);
  const auto above = static_cast<std::int64_t>(std::ceil(place));
  switch (interpolation) {
    case Interpolation::lower:
      return {below, below, 0};
    case Interpolation::higher:
      return {above, above, 0};
    case Interpolation::midpoint:
      return {below, above, 0.5};
    case Interpolation::nearest: {
      const auto nearest = static_cast<std::int64_t>(std::nearbyint(place));
      return {nearest, nearest, 0};
    }
    case Interpolation::linear:
      break;
  }
  return {below, above, place - lower};
}

}  // namespace

std::vector<TensorType> ArgSort::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  const Shape& x = inputs[0].shape;
  if (x.rank() == 0) throw RuleError("needs an axis to order; reshape the operand");
  std::vector<std::int64_t> extents = x.extents();
  if (options().count && (*options().count < 0 || *options().count > extents.back()))
    throw RuleError(fmt::format("an axis of {} has no {} first elements", extents.back(), *options().count));
  extents.back() = options().count.value_or(extents.back());
  return {{DType::int64, Shape(std::move(extents))}};
}

std::vector<TensorType> SearchSorted::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_same_dtype(inputs[0], inputs[1]);
  const Shape& sorted = inputs[0].shape;
  const Shape& values = inputs[1].shape;
  const bool fits = sorted.rank() == 1 || (sorted.rank() > 1 && sorted.rank() == values.rank() &&
                                           std::equal(sorted.begin(), sorted.end() - 1, values.begin()));
  if (!fits)
    throw RuleError(
        "the sorted elements must have one axis, or all axes of the values but for the last extent");
  return {{DType::int64, values}};
}

Node argsort(Operand x, std::int64_t axis, bool descending) {
  const OrderedAxis along("argsort", x, axis);
  return ordered_indices(x.node(), along.from_front, {.descending = descending});
}

ValuesAndIndices sort(Operand x, std::int64_t axis, bool descending) {
  const OrderedAxis along("sort", x, axis);
  return taken_at(x.node(), ordered_indices(x.node(), along.from_front, {.descending = descending}),
                  along.from_front);
}

ValuesAndIndices topk(Operand x, std::int64_t k, std::int64_t axis, bool largest) {
  const OrderedAxis along("topk", x, axis);
  const std::int64_t extent = x.node().shape()[along.from_front];
  require_that(k >= 0 && k <= extent, "topk", {x}, fmt::format("k must be from 0 to {}, not {}", extent, k));
  return taken_at(x.node(), ordered_indices(x.node(), along.from_front, {.descending = largest, .count = k}),
                  along.from_front);
}

ValuesAndIndices kthvalue(Operand x, std::int64_t k, std::int64_t axis, bool keepdims) {
  const OrderedAxis along("kthvalue", x, axis);
  const std::int64_t extent = x.node().shape()[along.from_front];
  require_that(k >= 1 && k <= extent, "kthvalue", {x},
               fmt::format("k must be from 1 to {}, not {}", extent, k));
  const Node place = kth_place(x.node(), k, along.from_front);
  return squeezed(taken_at(x.node(), place, along.from_front), along.from_front, keepdims);
}

ValuesAndIndices median(Operand x, std::int64_t axis, bool keepdims) {
  const OrderedAxis along("median", x, axis);
  const Node node = x.node();
  axis = along.from_front;
  require_not_empty("median", x, axis);
  require_that(node.dtype() != DType::boolean, "median", {x},
               "is defined for numbers, not for bool; use cast()");
  Node place = kth_place(node, (node.shape()[axis] + 1) / 2, axis);
  if (is_floating(node.dtype())) {
    const Node largest = argmax(node, axis, true);  // the first NaN if there is one
    place = where(is_nan(take_along_axis(node, largest, axis)), largest, place);
  }
  return squeezed(taken_at(node, place, axis), axis, keepdims);
}

Node median(Operand x) { return median({reshape(x, {x.node().shape().elements()}), x.where()}, 0).values; }

Node quantile(Operand x, double q, QuantileOptions options) {
  require_floating_operand("quantile", x);
  require_that(q >= 0 && q <= 1, "quantile", {x}, fmt::format("q must be from 0 to 1, not {}", q));
  const std::int64_t rank = x.node().shape().rank();
  const Operand line = options.axis ? x : Operand(reshape(x, {x.node().shape().elements()}), x.where());
  const OrderedAxis along("quantile", line, options.axis.value_or(0));
  const std::int64_t axis = along.from_front;
  require_not_empty("quantile", line, axis);
  const Node node = size_of(x.node().dtype()) == 2 ? cast(line, DType::float32) : line.node();
  const Neighbours at = neighbours_of(q * static_cast<double>(node.shape()[axis] - 1), options.interpolation);
  const Node order = ordered_indices(node, axis, {.count = at.higher + 1});
  const auto element = [&](std::int64_t place) {
    return take_along_axis(node, slice(order, {.axis = axis, .start = place, .stop = place + 1}), axis);
  };
  Node value = element(at.lower);
  if (at.fraction > 0 && at.higher > at.lower)
    value = weighted_sum(value, 1 - at.fraction, element(at.higher), at.fraction);
  const Node largest = stop_gradient(max(node, {.axes = {axis}, .keepdims = true}));
  value = cast(where(is_nan(largest), largest, value), x.node().dtype());
  if (options.keepdims)
    return options.axis ? value
                        : reshape(value, std::vector<std::int64_t>(static_cast<std::size_t>(rank), 1));
  return squeeze(value, {axis});
}

Node searchsorted(Operand sorted, Operand values, bool right) {
  return apply(std::make_shared<SearchSorted>(SearchSortedOptions{right}), {sorted, values});
}

namespace {

using namespace portable;

// True if a comes before b in ascending order, in which NaN is the last.
template <class T>
bool is_less(T a, T b) {
  if (is_nan(a)) return false;
  return is_nan(b) || static_cast<Compute<T>>(a) < static_cast<Compute<T>>(b);
}

// Writes the first `count` places of the order. Until the whole line is visited, the places are a heap of the best ones
// so far.
template <class Before>
void order_line(std::int64_t* places, std::int64_t extent, std::int64_t count, const Before& before) {
  std::iota(places, places + count, 0);
  if (count == 0) return;
  if (count < extent) {
    std::make_heap(places, places + count, before);
    for (std::int64_t i = count; i < extent; ++i) {
      if (!before(i, places[0])) continue;
      std::pop_heap(places, places + count, before);
      places[count - 1] = i;
      std::push_heap(places, places + count, before);
    }
  }
  std::sort(places, places + count, before);
}

}  // namespace

void ArgSort::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const std::int64_t extent = call.inputs[0].shape()[result.shape().rank() - 1];
  const std::int64_t count = result.shape()[result.shape().rank() - 1];
  const bool descending = options().descending;
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    parallel_for(result.elements() / count, extent * 16, [&](std::int64_t line) {
      const T* x = call.inputs[0].as<T>() + line * extent;
      order_line(result.as<std::int64_t>() + line * count, extent, count,
                 [=](std::int64_t a, std::int64_t b) {
                   if (descending ? is_less(x[b], x[a]) : is_less(x[a], x[b])) return true;
                   if (descending ? is_less(x[a], x[b]) : is_less(x[b], x[a])) return false;
                   return a < b;
                 });
    });
  });
}

void SearchSorted::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const Shape& sorted = call.inputs[0].shape();
  const std::int64_t extent = sorted[sorted.rank() - 1];
  const std::int64_t of_line =
      sorted.rank() == 1 ? result.elements() : result.shape()[result.shape().rank() - 1];
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const T* values = call.inputs[1].as<T>();
    parallel_for(result.elements(), 64, [&](std::int64_t i) {
      const T* line = call.inputs[0].as<T>() + i / of_line * extent;
      const T* place = options().right ? std::upper_bound(line, line + extent, values[i], is_less<T>)
                                       : std::lower_bound(line, line + extent, values[i], is_less<T>);
      result.as<std::int64_t>()[i] = place - line;
    });
  });
}

}  // namespace plexaura
