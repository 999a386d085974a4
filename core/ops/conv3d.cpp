#include "core/ops/conv3d.h"

#include "core/ops/convolution.h"
#include "core/ops/reduce.h"

namespace plexaura {

namespace {

using Rules = ConvolutionRules<Conv3dOptions>;

// Returns the options in one form, so that equal ops have equal options.
Conv3dOptions canonical(Conv3dOptions options) {
  if (options.padding_end == options.padding) options.padding_end.reset();
  return options;
}

}  // namespace

std::vector<TensorType> Conv3dOp::infer(std::span<const TensorType> inputs) const {
  return {Rules(options()).output(inputs)};
}

std::vector<Node> Conv3dOp::vjp(const VjpRequest& request) const {
  const Node& x = request.inputs[0];
  const Node& weights = request.inputs[1];
  const Node& grad = request.grad_outputs[0];
  std::vector<Node> grads(request.inputs.size());
  if (request.wanted[0]) grads[0] = conv3d_input_grad(weights, grad, spatial_3d(x.shape()), options());
  if (request.wanted[1]) grads[1] = conv3d_weight_grad(x, grad, spatial_3d(weights.shape()), options());
  if (grads.size() == 3 && request.wanted[2]) grads[2] = sum(grad, {.axes = {0, 2, 3, 4}});
  return grads;
}

std::vector<TensorType> Conv3dInputGrad::infer(std::span<const TensorType> inputs) const {
  return {Rules(options()).input_grad(inputs, options().input)};
}

// Follows from <u, input_grad(w, g)> = <conv(u, w), g>.
std::vector<Node> Conv3dInputGrad::vjp(const VjpRequest& request) const {
  const Node& weights = request.inputs[0];
  const Node& grad_out = request.inputs[1];
  const Node& u = request.grad_outputs[0];
  Node grad_weights;
  Node grad_grad_out;
  const Conv3dOptions& forward = options();
  if (request.wanted[0]) grad_weights = conv3d_weight_grad(u, grad_out, spatial_3d(weights.shape()), forward);
  if (request.wanted[1]) grad_grad_out = conv3d(u, weights, forward);
  return {grad_weights, grad_grad_out};
}

std::vector<TensorType> Conv3dWeightGrad::infer(std::span<const TensorType> inputs) const {
  return {Rules(options()).weight_grad(inputs, options().kernel)};
}

// Follows from <u, weight_grad(x, g)> = <conv(x, u), g>.
std::vector<Node> Conv3dWeightGrad::vjp(const VjpRequest& request) const {
  const Node& x = request.inputs[0];
  const Node& grad_out = request.inputs[1];
  const Node& u = request.grad_outputs[0];
  Node grad_x;
  Node grad_grad_out;
  const Conv3dOptions& forward = options();
  if (request.wanted[0]) grad_x = conv3d_input_grad(u, grad_out, spatial_3d(x.shape()), forward);
  if (request.wanted[1]) grad_grad_out = conv3d(x, u, forward);
  return {grad_x, grad_grad_out};
}

Node conv3d(Operand x, Operand weights, Conv3dOptions options) {
  return apply(std::make_shared<Conv3dOp>(canonical(options)), {x, weights});
}

Node conv3d(Operand x, Operand weights, Operand bias, Conv3dOptions options) {
  return apply(std::make_shared<Conv3dOp>(canonical(options)), {x, weights, bias});
}

Node conv3d_input_grad(Operand weights, Operand grad_out, Size3d input, Conv3dOptions options) {
  return apply(std::make_shared<Conv3dInputGrad>(Conv3dInputGradOptions{canonical(options), input}),
               {weights, grad_out});
}

Node conv3d_weight_grad(Operand x, Operand grad_out, Size3d kernel, Conv3dOptions options) {
  return apply(std::make_shared<Conv3dWeightGrad>(Conv3dWeightGradOptions{canonical(options), kernel}),
               {x, grad_out});
}

void Conv3dOp::compute(const HostCall& call) const { convolve(call, options()); }
void Conv3dInputGrad::compute(const HostCall& call) const { convolution_input_grad(call, options()); }
void Conv3dWeightGrad::compute(const HostCall& call) const { convolution_weight_grad(call, options()); }

}  // namespace plexaura
