#include "core/ops/cross_entropy.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/labels.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"

namespace plexaura {

namespace {

Shape loss_shape(const Shape& logits, Reduction reduction) {
  return reduction == Reduction::none ? Shape{logits[0]} : Shape{};
}

// One over the number of samples for a mean, else 1.
double weight_of_sample(const Shape& logits, Reduction reduction) {
  return reduction == Reduction::mean ? 1.0 / static_cast<double>(std::max<std::int64_t>(logits[0], 1)) : 1.0;
}

}  // namespace

std::string_view name_of(Reduction reduction) {
  static constexpr std::array<std::string_view, 3> names{"mean", "sum", "none"};
  return names.at(static_cast<std::size_t>(reduction));
}

std::vector<TensorType> SoftmaxCrossEntropy::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_logits_and_labels(inputs[0], inputs[1]);
  return {{inputs[0].dtype, loss_shape(inputs[0].shape, options().reduction)}, inputs[0]};
}

std::vector<Node> SoftmaxCrossEntropy::vjp(const VjpRequest& request) const {
  const Node& logits = request.inputs[0];
  const Node& labels = request.inputs[1];
  const Node& probabilities = request.outputs[1];
  return {apply(std::make_shared<SoftmaxCrossEntropyGrad>(options()),
                {logits, labels, probabilities, request.grad_outputs[0]}),
          Node()};
}

std::vector<TensorType> SoftmaxCrossEntropyGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 4);
  require_logits_and_labels(inputs[0], inputs[1]);
  if (inputs[2] != inputs[0]) throw RuleError("the probabilities must have the type and shape of the logits");
  if (inputs[3] != TensorType{inputs[0].dtype, loss_shape(inputs[0].shape, options().reduction)})
    throw RuleError("the gradient must have the type and shape of the loss");
  return {inputs[0]};
}

// With p = softmax(logits), w the weight of a sample and g its cotangent this op is d = w g (p -
// one_hot(labels)). Against a cotangent u of d: the derivative to the logits is w g p (u - sum(p u)), that to
// g is w sum(u (p - one_hot)).
std::vector<Node> SoftmaxCrossEntropyGrad::vjp(const VjpRequest& request) const {
  const Node& logits = request.inputs[0];
  const Node& grad_out = request.inputs[3];
  const Node& u = request.grad_outputs[0];
  const Shape& shape = logits.shape();
  const double weight = weight_of_sample(shape, options().reduction);
  const Node p = softmax(logits, 1);
  Node grad_logits;
  Node grad_grad_out;
  if (request.wanted[0]) {
    const Node g = options().reduction == Reduction::none ? reshape(grad_out, {shape[0], 1}) : grad_out;
    grad_logits = weight * g * p * (u - sum(p * u, {.axes = {1}, .keepdims = true}));
  }
  if (request.wanted[3]) {
    const Node by_sample = sum(u * (p - one_hot(request.inputs[1], shape[1], logits.dtype())), {.axes = {1}});
    grad_grad_out = sum_to(weight * by_sample, grad_out.shape());
  }
  return {grad_logits, Node(), Node(), grad_grad_out};
}

Node softmax_cross_entropy(Operand logits, Operand labels, CrossEntropyOptions options) {
  return apply(std::make_shared<SoftmaxCrossEntropy>(options), {logits, labels});
}

}  // namespace plexaura
