#include "core/ops/slice.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"

namespace plexaura {

namespace {

TensorType with_extent(const TensorType& type, std::int64_t axis, std::int64_t extent) {
  std::vector<std::int64_t> extents = type.shape.extents();
  extents[static_cast<std::size_t>(axis)] = extent;
  return {type.dtype, Shape(std::move(extents))};
}

SliceIndices indices_in(const SliceOptions& options, const Shape& shape) {
  return indices_of(options, shape.rank(), shape[normalise_axis(options.axis, shape.rank())]);
}

}  // namespace

SliceIndices indices_of(const SliceOptions& options, std::int64_t rank, std::int64_t extent) {
  if (options.step == 0) throw RuleError("the step must not be 0");
  const std::int64_t step = std::clamp(options.step, -extent - 1, extent + 1);
  const bool backwards = step < 0;
  // A slice that goes backwards may stop before element 0, at index -1, and begins at the last element at most.
  const std::int64_t lowest = backwards ? -1 : 0;
  const std::int64_t highest = backwards ? extent - 1 : extent;
  const auto inside = [=](std::int64_t index) {
    return std::clamp(index < 0 ? index + extent : index, lowest, highest);
  };
  const std::int64_t start = options.start ? inside(*options.start) : (backwards ? highest : lowest);
  const std::int64_t stop = options.stop ? inside(*options.stop) : (backwards ? lowest : highest);
  const std::int64_t distance = backwards ? start - stop : stop - start;
  return {normalise_axis(options.axis, rank), start, step,
          distance > 0 ? 1 + (distance - 1) / std::abs(step) : 0};
}

std::vector<TensorType> SliceOp::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  const SliceIndices indices = indices_in(options(), inputs[0].shape);
  return {with_extent(inputs[0], indices.axis, indices.count)};
}

std::vector<Node> SliceOp::vjp(const VjpRequest& request) const {
  const Shape& x = request.inputs[0].shape();
  return {slice_grad(request.grad_outputs[0], x[normalise_axis(options().axis, x.rank())], options())};
}

std::vector<TensorType> SliceGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  if (options().extent < 0)
    throw RuleError(fmt::format("the extent must be 0 or more, not {}", options().extent));
  const SliceIndices indices = indices_of(options(), inputs[0].shape.rank(), options().extent);
  if (inputs[0].shape[indices.axis] != indices.count)
    throw RuleError(fmt::format("the gradient must have the {} elements of the slice along axis {}",
                                indices.count, indices.axis));
  return {with_extent(inputs[0], indices.axis, options().extent)};
}

std::vector<Node> SliceGrad::vjp(const VjpRequest& request) const {
  const SliceOptions& forward = options();
  return {slice(request.grad_outputs[0], forward)};
}

Node slice(Operand x, SliceOptions options) { return apply(std::make_shared<SliceOp>(options), {x}); }

Node slice_grad(Operand grad_out, std::int64_t extent, SliceOptions options) {
  return apply(std::make_shared<SliceGrad>(SliceGradOptions{options, extent}), {grad_out});
}

namespace {

using namespace portable;

// The walk over a slice and the whole value, and the index of the slice's first element in the whole value.
struct Part {
  StridedWalk<1> walk;
  std::int64_t first;
};

Part part_of(const Shape& whole, const Shape& slice, const SliceIndices& indices) {
  Part part{StridedWalk<1>(slice.elements()), indices.start * stride_of(whole, indices.axis)};
  for (std::int64_t axis = 0; axis < whole.rank(); ++axis)
    part.walk.add_axis(slice[axis], {stride_of(whole, axis) * (axis == indices.axis ? indices.step : 1)});
  return part;
}

// Calls body(index in the slice, index in the whole, step in the whole, count) for runs of elements.
template <class Body>
void for_each_run(const Part& part, const Body& body) {
  const std::int64_t step = part.walk.run_strides()[0];
  parallel_pieces(part.walk.elements(), 1, [&](std::int64_t begin, std::int64_t end) {
    part.walk.runs(begin, end, [&](std::int64_t at, const auto& offsets, std::int64_t length) {
      body(at, part.first + offsets[0], step, length);
    });
  });
}

}  // namespace

void SliceOp::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  const Shape& whole = call.inputs[0].shape();
  const std::int64_t axis = normalise_axis(options().axis, whole.rank());
  const Part part = part_of(whole, call.outputs[0].shape(), indices_of(options(), whole.rank(), whole[axis]));
  dispatch(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const T* src = call.inputs[0].as<T>();
    T* dst = call.outputs[0].as<T>();
    for_each_run(part, [=](std::int64_t at, std::int64_t place, std::int64_t step, std::int64_t length) {
      copy_run(dst + at, 1, src + place, step, length);
    });
  });
}

void SliceGrad::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const Part part = part_of(result.shape(), call.inputs[0].shape(),
                            indices_of(options(), result.shape().rank(), options().extent));
  std::memset(result.data, 0, static_cast<std::size_t>(result.type->bytes()));
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* src = call.inputs[0].as<T>();
    T* dst = result.as<T>();
    for_each_run(part, [=](std::int64_t at, std::int64_t place, std::int64_t step, std::int64_t length) {
      copy_run(dst + place, step, src + at, 1, length);
    });
  });
}

}  // namespace plexaura
