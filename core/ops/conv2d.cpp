#include "core/ops/conv2d.h"

#include "core/ops/convolution.h"
#include "core/ops/reduce.h"

namespace plexaura {

namespace {

using Rules = ConvolutionRules<Conv2dOptions>;

// Returns the options in one form, so that equal ops have equal options.
Conv2dOptions canonical(Conv2dOptions options) {
  if (options.padding_end == options.padding) options.padding_end.reset();
  return options;
}

}  // namespace

std::vector<TensorType> Conv2dOp::infer(std::span<const TensorType> inputs) const {
  return {Rules(options()).output(inputs)};
}

std::vector<Node> Conv2dOp::vjp(const VjpRequest& request) const {
  const Node& x = request.inputs[0];
  const Node& weights = request.inputs[1];
  const Node& grad = request.grad_outputs[0];
  std::vector<Node> grads(request.inputs.size());
  if (request.wanted[0]) grads[0] = conv2d_input_grad(weights, grad, spatial(x.shape()), options());
  if (request.wanted[1]) grads[1] = conv2d_weight_grad(x, grad, spatial(weights.shape()), options());
  if (grads.size() == 3 && request.wanted[2]) grads[2] = sum(grad, {.axes = {0, 2, 3}});
  return grads;
}

std::vector<TensorType> Conv2dInputGrad::infer(std::span<const TensorType> inputs) const {
  return {Rules(options()).input_grad(inputs, options().input)};
}

// Follows from <u, input_grad(w, g)> = <conv(u, w), g>.
std::vector<Node> Conv2dInputGrad::vjp(const VjpRequest& request) const {
  const Node& weights = request.inputs[0];
  const Node& grad_out = request.inputs[1];
  const Node& u = request.grad_outputs[0];
  Node grad_weights;
  Node grad_grad_out;
  const Conv2dOptions& forward = options();
  if (request.wanted[0]) grad_weights = conv2d_weight_grad(u, grad_out, spatial(weights.shape()), forward);
  if (request.wanted[1]) grad_grad_out = conv2d(u, weights, forward);
  return {grad_weights, grad_grad_out};
}

std::vector<TensorType> Conv2dWeightGrad::infer(std::span<const TensorType> inputs) const {
  return {Rules(options()).weight_grad(inputs, options().kernel)};
}

// Follows from <u, weight_grad(x, g)> = <conv(x, u), g>.
std::vector<Node> Conv2dWeightGrad::vjp(const VjpRequest& request) const {
  const Node& x = request.inputs[0];
  const Node& grad_out = request.inputs[1];
  const Node& u = request.grad_outputs[0];
  Node grad_x;
  Node grad_grad_out;
  const Conv2dOptions& forward = options();
  if (request.wanted[0]) grad_x = conv2d_input_grad(u, grad_out, spatial(x.shape()), forward);
  if (request.wanted[1]) grad_grad_out = conv2d(x, u, forward);
  return {grad_x, grad_grad_out};
}

Node conv2d(Operand x, Operand weights, Conv2dOptions options) {
  return apply(std::make_shared<Conv2dOp>(canonical(options)), {x, weights});
}

Node conv2d(Operand x, Operand weights, Operand bias, Conv2dOptions options) {
  return apply(std::make_shared<Conv2dOp>(canonical(options)), {x, weights, bias});
}

Node conv2d_input_grad(Operand weights, Operand grad_out, Size2d input, Conv2dOptions options) {
  return apply(std::make_shared<Conv2dInputGrad>(Conv2dInputGradOptions{canonical(options), input}),
               {weights, grad_out});
}

Node conv2d_weight_grad(Operand x, Operand grad_out, Size2d kernel, Conv2dOptions options) {
  return apply(std::make_shared<Conv2dWeightGrad>(Conv2dWeightGradOptions{canonical(options), kernel}),
               {x, grad_out});
}

void Conv2dOp::compute(const HostCall& call) const { convolve(call, lifted(options())); }
void Conv2dInputGrad::compute(const HostCall& call) const { convolution_input_grad(call, lifted(options())); }
void Conv2dWeightGrad::compute(const HostCall& call) const {
  convolution_weight_grad(call, lifted(options()));
}

}  // namespace plexaura
