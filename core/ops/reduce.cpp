#include "core/ops/reduce.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>

#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

bool contains(const std::vector<std::int64_t>& axes, std::int64_t axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

Shape reduced(const Shape& shape, const ReduceOptions& options, bool keepdims) {
  std::vector<std::int64_t> extents;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (!contains(options.axes, axis))
      extents.push_back(shape[axis]);
    else if (keepdims)
      extents.push_back(1);
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

void require_axes(const TensorType& x, const ReduceOptions& options) {
  if (x.dtype == DType::boolean) throw RuleError("is defined for numbers, not for bool; use cast()");
  for (const std::int64_t axis : options.axes) normalise_axis(axis, x.shape.rank());
  if (std::ranges::adjacent_find(options.axes) != options.axes.end())
    throw RuleError("an axis is named twice; name each once");
}

// There must be something to choose from.
void require_elements(const TensorType& x, const ReduceOptions& options) {
  for (const std::int64_t axis : options.axes)
    if (x.shape[axis] == 0)
      throw RuleError(fmt::format("axis {} is empty, and has no largest or smallest element", axis));
}

}  // namespace

std::string_view Reduce::name() const {
  static constexpr std::array<std::string_view, 4> names{"sum", "mean", "max", "min"};
  return names.at(static_cast<std::size_t>(kind_));
}

std::vector<TensorType> Reduce::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  const TensorType& x = inputs[0];
  if (kind_ == Kind::mean) require_floating(x);
  require_axes(x, options());
  if (kind_ == Kind::max || kind_ == Kind::min) require_elements(x, options());
  return {{x.dtype, reduced(x.shape, options(), options().keepdims)}};
}

std::vector<Node> Reduce::vjp(const VjpRequest& request) const {
  const Node& x = request.inputs[0];
  const Shape kept = reduced(x.shape(), options(), true);
  const Node grad = reshape(request.grad_outputs[0], kept.extents());
  if (kind_ == Kind::sum) return {broadcast_to(grad, x.shape())};
  if (kind_ == Kind::mean) {
    const std::int64_t averaged = x.shape().elements() / std::max<std::int64_t>(kept.elements(), 1);
    return {broadcast_to(divide_by_count(grad, std::max<std::int64_t>(averaged, 1)), x.shape())};
  }
  const Node chosen = cast(eq(x, reshape(request.outputs[0], kept.extents())), x.dtype());
  return {grad / sum(chosen, {.axes = options().axes, .keepdims = true}) * chosen};
}

std::vector<TensorType> ArgMax::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  require_axes(inputs[0], options());
  require_elements(inputs[0], options());
  return {{DType::int64, reduced(inputs[0].shape, options(), options().keepdims)}};
}

Node max(Operand x, ReduceOptions options) { return reduce(Reduce::Kind::max, x, std::move(options)); }
Node min(Operand x, ReduceOptions options) { return reduce(Reduce::Kind::min, x, std::move(options)); }

Node argmax(Operand x, std::int64_t axis, bool keepdims) {
  if (axis < 0) axis += x.node().shape().rank();
  return apply(std::make_shared<ArgMax>(ReduceOptions{{axis}, keepdims}), {x});
}

Node sum(Operand x, ReduceOptions options) { return reduce(Reduce::Kind::sum, x, std::move(options)); }
Node mean(Operand x, ReduceOptions options) { return reduce(Reduce::Kind::mean, x, std::move(options)); }

Node divide_by_count(Operand x, std::int64_t count) {
  const DType dtype = x.node().dtype();
  const Tensor number = Tensor::scalar(count);
  if (size_of(dtype) > 2 || number.cast(dtype).cast(DType::int64) == number) return div(x, count);
  const Node quotient = div({cast(x, DType::float32), x.where()}, count);
  return cast({quotient, x.where()}, dtype);
}

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
