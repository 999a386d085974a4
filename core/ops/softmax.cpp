#include "core/ops/softmax.h"

#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

Node along_axis(Softmax::Kind kind, Operand x, std::int64_t axis) {
  if (axis < 0) axis += x.node().shape().rank();  // what is still out of range is refused by infer
  return apply(std::make_shared<Softmax>(kind, SoftmaxOptions{axis}), {x});
}

}  // namespace

std::vector<TensorType> Softmax::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  require_floating(inputs[0]);
  normalise_axis(options().axis, inputs[0].shape.rank());
  return {inputs[0]};
}

std::vector<Node> Softmax::vjp(const VjpRequest& request) const {
  const Node& y = request.outputs[0];
  const Node& grad = request.grad_outputs[0];
  const ReduceOptions along{.axes = {options().axis}, .keepdims = true};
  if (kind_ == Kind::softmax) return {y * (grad - sum(grad * y, along))};
  return {grad - exp(y) * sum(grad, along)};
}

Node softmax(Operand x, std::int64_t axis) { return along_axis(Softmax::Kind::softmax, x, axis); }
Node log_softmax(Operand x, std::int64_t axis) { return along_axis(Softmax::Kind::log_softmax, x, axis); }

}  // namespace plexaura
