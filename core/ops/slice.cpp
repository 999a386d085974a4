#include "core/ops/slice.h"

#include <algorithm>
#include <fmt/format.h>

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
  if (options.step < 1) throw RuleError(fmt::format("the step must be 1 or more, not {}", options.step));
  const auto inside = [extent](std::int64_t index) {
    return std::clamp(index < 0 ? index + extent : index, std::int64_t{0}, extent);
  };
  const std::int64_t start = inside(options.start.value_or(0));
  const std::int64_t stop = inside(options.stop.value_or(extent));
  return {normalise_axis(options.axis, rank), start, options.step,
          stop > start ? 1 + (stop - start - 1) / options.step : 0};
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

}  // namespace plexaura
