#include "core/ops/reduce.h"

#include <algorithm>
#include <numeric>

#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/shape.h"

namespace plexaura {

namespace {

bool contains(const std::vector<std::int64_t>& axes, std::int64_t axis) { return std::ranges::find(axes, axis) != axes.end(); }

Shape reduced(const Shape& shape, const ReduceOptions& options, bool keepdims) {
  std::vector<std::int64_t> extents;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (!contains(options.axes, axis)) extents.push_back(shape[axis]);
    else if (keepdims) extents.push_back(1);
  }
  return Shape(std::move(extents));
}

Node reduce(Reduce::Kind kind, Operand x, ReduceOptions options) {
  const std::int64_t rank = x.node().shape().rank();
  if (options.axes.empty()) {
    options.axes.resize(static_cast<std::size_t>(rank));
    std::iota(options.axes.begin(), options.axes.end(), 0);
  }
  for (std::int64_t& axis : options.axes)
    if (axis < 0) axis += rank;  // what is still out of range is refused by infer
  std::ranges::sort(options.axes);
  return apply(std::make_shared<Reduce>(kind, std::move(options)), {x});
}

}  // namespace

std::vector<TensorType> Reduce::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  if (kind_ == Kind::mean) require_floating(inputs[0]);
  if (inputs[0].dtype == DType::boolean) throw RuleError("is defined for numbers, not for bool; use cast()");
  for (const std::int64_t axis : options_.axes) normalise_axis(axis, inputs[0].shape.rank());
  if (std::ranges::adjacent_find(options_.axes) != options_.axes.end()) throw RuleError("an axis is named twice; name each once");
  return {{inputs[0].dtype, reduced(inputs[0].shape, options_, options_.keepdims)}};
}

std::vector<Node> Reduce::vjp(const VjpRequest& request) const {
  const Shape& shape = request.inputs[0].shape();
  const Shape kept = reduced(shape, options_, true);
  Node grad = reshape(request.grad_outputs[0], kept.extents());
  if (kind_ == Kind::mean) {
    const std::int64_t averaged = shape.elements() / std::max<std::int64_t>(kept.elements(), 1);
    grad = grad / std::max<std::int64_t>(averaged, 1);
  }
  return {broadcast_to(grad, shape)};
}

void Reduce::describe(Description& description) const {
  description.add("axes", options_.axes).add("keepdims", options_.keepdims);
}

Node sum(Operand x, ReduceOptions options) { return reduce(Reduce::Kind::sum, x, std::move(options)); }
Node mean(Operand x, ReduceOptions options) { return reduce(Reduce::Kind::mean, x, std::move(options)); }

Node sum_to(Operand x, const Shape& shape) {
  const Node node = x.node();
  if (node.shape() == shape) return node;
  const std::int64_t added = node.shape().rank() - shape.rank();
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < node.shape().rank(); ++axis)
    if (axis < added || (shape[axis - added] == 1 && node.shape()[axis] != 1)) axes.push_back(axis);
  if (axes.empty()) return reshape(x, shape.extents());
  const bool leading = axes.back() < added;
  const Node summed = sum(x, {.axes = axes, .keepdims = !leading});
  return summed.shape() == shape ? summed : reshape(summed, shape.extents());
}

}  // namespace plexaura
