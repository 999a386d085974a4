#include "core/ops/indexing.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "core/graph/graph.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/constants.h"
#include "core/ops/elementwise.h"
#include "core/ops/gather.h"
#include "core/ops/indices.h"
#include "core/ops/lines.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

Shape with_extent_along(const Shape& shape, std::int64_t axis, std::int64_t extent) {
  std::vector<std::int64_t> extents = shape.extents();
  extents[static_cast<std::size_t>(axis)] = extent;
  return Shape(std::move(extents));
}

void require_same_rank(const Shape& x, const Shape& indices) {
  if (x.rank() != indices.rank())
    throw RuleError(
        fmt::format("the indices must have as many axes as x ({}, not {}); reshape them or call gather()",
                    x.rank(), indices.rank()));
}

// Broadcasts indices or updates to x's extents, but for the axis, whose extent is `count`.
Node spread_to(const Node& values, const Shape& x, std::int64_t axis, std::int64_t count) {
  const Shape shape = with_extent_along(x, axis, count);
  return values.shape() == shape ? values : broadcast_to(values, shape);
}

// The operands of scatter() and scatter_add(), broadcast and checked. While this object lives, new nodes have the line of
// the caller as their origin.
struct ScatterOperands {
  ScatterOperands(std::string_view builder, const Operand& target, const Operand& places,
                  const Operand& values, std::int64_t at)
      : guard(origin_of_caller(target)), x(target.node()) {
    axis = axis_of(builder, target, at, x.shape().rank());
    updates = values.node_like(x);
    const Node given = places.node();
    require_that(updates.dtype() == x.dtype(), builder, {target, places, values},
                 "the updates must have the dtype of x; cast() one of them");
    require_that(given.shape().rank() == x.shape().rank() && updates.shape().rank() <= x.shape().rank(),
                 builder, {target, places, values},
                 "the indices must have as many axes as x, and the updates no more");
    const auto fits = [&](const Shape& shape) {
      for (std::int64_t i = 0; i < shape.rank(); ++i) {
        const std::int64_t of_x = i + x.shape().rank() - shape.rank();
        if (of_x != axis && shape[i] != 1 && shape[i] != x.shape()[of_x]) return false;
      }
      return true;
    };
    require_that(
        fits(given.shape()) && fits(updates.shape()), builder, {target, places, values},
        fmt::format("the indices and updates must have the extents of x, or 1, along all axes but {}; "
                    "slice() x or them",
                    axis));
    const std::int64_t from_end = axis - x.shape().rank() + updates.shape().rank();
    const std::int64_t count = given.shape()[axis];
    const std::int64_t update_count = from_end < 0 ? 1 : updates.shape()[from_end];
    require_that(count == update_count || count == 1 || update_count == 1, builder, {target, places, values},
                 fmt::format("there must be one update for each index along axis {}", axis));
    const std::int64_t common = count == 1 ? update_count : count;
    indices = spread_to(given, x.shape(), axis, common);
    updates = spread_to(updates, x.shape(), axis, common);
  }

  Graph::WithOrigin guard;
  Node x;
  Node indices;
  Node updates;
  std::int64_t axis = 0;
};

Node sums_at(const Node& updates, const Node& indices, std::int64_t axis, std::int64_t extent) {
  return apply(std::make_shared<TakeAlongAxisGrad>(TakeAlongAxisGradOptions{{axis}, extent}),
               {updates, indices});
}

// True for each index that no later index of its line repeats.
Node is_last_of_its_kind(const Node& indices, std::int64_t axis, const Shape& x) {
  Graph& graph = indices.graph();
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank()), 1);
  const std::int64_t count = indices.shape()[axis];
  extents[static_cast<std::size_t>(axis)] = count;
  const Node places = broadcast_to(reshape(iota(graph, count), std::move(extents)), indices.shape());
  const Node none = broadcast_to(graph.constant(Tensor::scalar(std::int64_t{0})), x);
  const Node last = apply(std::make_shared<Scatter>(AlongAxisOptions{axis}), {none, indices, places});
  return eq(take_along_axis(last, indices, axis), places);
}

}  // namespace

std::vector<TensorType> TakeAlongAxis::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  const Shape& x = inputs[0].shape;
  const Shape& indices = inputs[1].shape;
  require_indices(inputs[1]);
  require_same_rank(x, indices);
  const std::int64_t axis = front_axis(options().axis, x.rank());
  const Shape others = broadcast(with_extent_along(x, axis, 1), with_extent_along(indices, axis, 1));
  return {{inputs[0].dtype, with_extent_along(others, axis, indices[axis])}};
}

// Gradients of 16-bit floats are added up in float32.
std::vector<Node> TakeAlongAxis::vjp(const VjpRequest& request) const {
  const Node& x = request.inputs[0];
  const Node& grad = request.grad_outputs[0];
  const DType wide = size_of(x.dtype()) == 2 ? DType::float32 : x.dtype();
  const std::int64_t axis = options().axis;
  const Node indices = spread_to(request.inputs[1], grad.shape(), axis, grad.shape()[axis]);
  return {cast(sums_at(cast(grad, wide), indices, axis, x.shape()[axis]), x.dtype()), Node()};
}

std::vector<TensorType> TakeAlongAxisGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_indices(inputs[1]);
  if (inputs[0].dtype == DType::boolean) throw RuleError("is defined for numbers, not for bool; use cast()");
  if (inputs[0].shape != inputs[1].shape) throw RuleError("the updates must have the shape of the indices");
  if (options().extent < 0) throw RuleError("the extent must be 0 or more");
  const std::int64_t axis = front_axis(options().axis, inputs[0].shape.rank());
  return {{inputs[0].dtype, with_extent_along(inputs[0].shape, axis, options().extent)}};
}

std::vector<Node> TakeAlongAxisGrad::vjp(const VjpRequest& request) const {
  return {take_along_axis(request.grad_outputs[0], request.inputs[1], options().axis), Node()};
}

std::vector<TensorType> Scatter::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 3);
  require_indices(inputs[1]);
  require_same_dtype(inputs[0], inputs[2]);
  const Shape& x = inputs[0].shape;
  require_same_rank(x, inputs[1].shape);
  const std::int64_t axis = front_axis(options().axis, x.rank());
  if (inputs[1].shape != inputs[2].shape || with_extent_along(inputs[1].shape, axis, x[axis]) != x)
    throw RuleError("indices and updates must have one shape, which is that of x but for the axis");
  return {inputs[0]};
}

std::vector<Node> Scatter::vjp(const VjpRequest& request) const {
  const Node& grad = request.grad_outputs[0];
  const Node& indices = request.inputs[1];
  const std::int64_t axis = options().axis;
  Node grad_x;
  Node grad_updates;
  if (request.wanted[0]) grad_x = scatter(grad, indices, 0, axis);
  if (request.wanted[2])
    grad_updates =
        where(is_last_of_its_kind(indices, axis, grad.shape()), take_along_axis(grad, indices, axis), 0);
  return {grad_x, Node(), grad_updates};
}

Node take_along_axis(Operand x, Operand indices, std::int64_t axis) {
  axis = counted_from_front(axis, x.node().shape().rank());
  return apply(std::make_shared<TakeAlongAxis>(AlongAxisOptions{axis}), {x, indices});
}

Node index_select(Operand x, std::int64_t axis, Operand indices) {
  require_that(indices.node().shape().rank() == 1, "index_select", {x, indices},
               "the indices must have one axis; flatten() them or call gather()");
  return gather(x, indices, {axis});
}

Node scatter(Operand x, Operand indices, Operand updates, std::int64_t axis) {
  const ScatterOperands of("scatter", x, indices, updates, axis);
  return apply(std::make_shared<Scatter>(AlongAxisOptions{of.axis}), {of.x, of.indices, of.updates});
}

Node scatter_add(Operand x, Operand indices, Operand updates, std::int64_t axis) {
  const ScatterOperands of("scatter_add", x, indices, updates, axis);
  const DType dtype = of.x.dtype();
  const DType wide = is_floating(dtype) && size_of(dtype) == 2 ? DType::float32 : dtype;
  const Node sums = sums_at(cast(of.updates, wide), of.indices, of.axis, of.x.shape()[of.axis]);
  return cast(cast(of.x, wide) + sums, dtype);
}

Node masked_fill(Operand x, Operand mask, Operand value) {
  const Node node = x.node();
  const Node filler = value.node_like(node);
  require_that(mask.node().dtype() == DType::boolean, "masked_fill", {x, mask, value},
               "the mask must be bool; compare or cast() it");
  for (const Shape& shape : {mask.node().shape(), filler.shape()}) {
    bool fits = shape.rank() <= node.shape().rank();
    for (std::int64_t i = 1; fits && i <= shape.rank(); ++i)
      fits = shape[shape.rank() - i] == 1 || shape[shape.rank() - i] == node.shape()[node.shape().rank() - i];
    require_that(fits, "masked_fill", {x, mask, value},
                 "the mask and the value must broadcast to the shape of x");
  }
  return where(mask, {filler, value.where()}, x);
}

namespace {

using namespace portable;

// The type in which two elements are added: integers wrap around.
template <class T>
using Addend = std::conditional_t<std::is_integral_v<T>, std::uint64_t, Compute<T>>;

// Calls body(from, to) for each index: `from` is the offset of the index itself, and `to` is the offset of the element
// that it selects in another value. That value has `extent` elements along the axis, and otherwise the shape of the
// indices. The calls for one line are in the order of its indices.
template <class Body>
void for_each_place(const HostView& indices, std::int64_t axis, std::int64_t extent, const Body& body) {
  const auto* values = indices.as<std::int64_t>();
  const Lines lines = Lines::along(indices.shape(), axis);
  constexpr std::int64_t width = 64;
  const std::int64_t pieces = (lines.behind + width - 1) / width;
  parallel_for(lines.before * pieces, lines.extent * width, [&](std::int64_t work) {
    const std::int64_t outer = work / pieces;
    const std::int64_t begin = work % pieces * width;
    const std::int64_t end = std::min(lines.behind, begin + width);
    for (std::int64_t i = 0; i < lines.extent; ++i)
      for (std::int64_t k = begin; k < end; ++k) {
        const std::int64_t at = (outer * lines.extent + i) * lines.behind + k;
        body(at, (outer * extent + values[at]) * lines.behind + k);
      }
  });
}

}  // namespace

void TakeAlongAxis::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const Shape& x = call.inputs[0].shape();
  const Shape& indices = call.inputs[1].shape();
  const std::int64_t axis = options().axis;
  require_inside(call.inputs[1], x[axis]);
  StridedWalk<2> walk(result.elements());
  for (std::int64_t i = 0; i < x.rank(); ++i)
    walk.add_axis(result.shape()[i], {i == axis ? 0 : broadcast_stride(x, result.shape(), i),
                                      broadcast_stride(indices, result.shape(), i)});
  const auto* index = call.inputs[1].as<std::int64_t>();
  const std::int64_t stride = stride_of(x, axis);
  const auto steps = walk.run_strides();  // clang's OpenMP cannot capture a structured binding
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* src = call.inputs[0].as<T>();
    T* dst = result.as<T>();
    parallel_pieces(result.elements(), 2,
                    [&, step_x = steps[0], step_index = steps[1]](std::int64_t begin, std::int64_t end) {
                      walk.runs(begin, end, [&](std::int64_t at, const auto& offsets, std::int64_t length) {
                        for (std::int64_t i = 0; i < length; ++i)
                          dst[at + i] =
                              src[offsets[0] + i * step_x + index[offsets[1] + i * step_index] * stride];
                      });
                    });
  });
}

void TakeAlongAxisGrad::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  require_inside(call.inputs[1], options().extent);
  std::memset(result.data, 0, static_cast<std::size_t>(result.type->bytes()));
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* updates = call.inputs[0].as<T>();
    T* sums = result.as<T>();
    for_each_place(call.inputs[1], options().axis, options().extent, [=](std::int64_t from, std::int64_t to) {
      sums[to] = static_cast<T>(static_cast<Addend<T>>(sums[to]) + static_cast<Addend<T>>(updates[from]));
    });
  });
}

void Scatter::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const std::int64_t extent = result.shape()[options().axis];
  require_inside(call.inputs[1], extent);
  copy_bytes(call.inputs[0], result);
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* updates = call.inputs[2].as<T>();
    T* dst = result.as<T>();
    for_each_place(call.inputs[1], options().axis, extent,
                   [=](std::int64_t from, std::int64_t to) { dst[to] = updates[from]; });
  });
}

}  // namespace plexaura
