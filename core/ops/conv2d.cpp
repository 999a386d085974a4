#include "core/ops/conv2d.h"

#include <fmt/format.h>

#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"

namespace plexaura {

namespace {

Window2d window_of(const Conv2dOptions& options, Size2d kernel) {
  return {kernel, options.stride, options.padding, options.dilation};
}

// What x and grad_out have in common with the weights, all of one floating dtype and rank 4.
void require_operands(const TensorType& a, const TensorType& b, const Conv2dOptions& options) {
  require_floating(a);
  require_same_dtype(a, b);
  require_nchw(a);
  require_nchw(b);
  if (options.groups < 1) throw RuleError(fmt::format("groups must be 1 or more, not {}", options.groups));
}

std::int64_t input_channels(const Shape& weights, const Conv2dOptions& options) {
  std::int64_t channels = 0;
  if (__builtin_mul_overflow(weights[1], options.groups, &channels))
    throw RuleError(fmt::format("{} groups of {} channels are more than a 64-bit number can count",
                                options.groups, weights[1]));
  return channels;
}

void require_divisible(std::int64_t channels, std::int64_t groups, std::string_view which) {
  if (channels % groups != 0)
    throw RuleError(
        fmt::format("the {} {} channels must be divisible by groups ({})", channels, which, groups));
}

void require_outputs(const Window2d& window, Size2d input, const Shape& grad_out) {
  const Size2d expected = window.outputs(input);
  if (spatial(grad_out) != expected)
    throw RuleError(fmt::format("the gradient must have the height and width of the output, {} x {}",
                                expected.h, expected.w));
}

}  // namespace

std::vector<TensorType> Conv2d::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, inputs.size() == 3 ? 3 : 2);
  require_operands(inputs[0], inputs[1], options());
  const Shape& x = inputs[0].shape;
  const Shape& weights = inputs[1].shape;
  if (x[1] != input_channels(weights, options()))
    throw RuleError(
        fmt::format("the input has {} channels and the weights expect {} (their second extent times groups); "
                    "make them equal",
                    x[1], input_channels(weights, options())));
  require_divisible(weights[0], options().groups, "output");
  if (inputs.size() == 3 && inputs[2] != TensorType{inputs[0].dtype, Shape{weights[0]}})
    throw RuleError(fmt::format(
        "the bias must have one element for each of the {} output channels, and the weights' dtype",
        weights[0]));
  const Size2d out = window_of(options(), spatial(weights)).outputs(spatial(x));
  return {{inputs[0].dtype, Shape{x[0], weights[0], out.h, out.w}}};
}

std::vector<Node> Conv2d::vjp(const VjpRequest& request) const {
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
  require_inputs(inputs, 2);
  require_operands(inputs[0], inputs[1], options());
  const Shape& weights = inputs[0].shape;
  const Shape& grad_out = inputs[1].shape;
  require_divisible(weights[0], options().groups, "output");
  if (grad_out[1] != weights[0])
    throw RuleError(fmt::format("the gradient has {} channels and the weights give {}; make them equal",
                                grad_out[1], weights[0]));
  require_outputs(window_of(options(), spatial(weights)), options().input, grad_out);
  return {{inputs[0].dtype,
           Shape{grad_out[0], input_channels(weights, options()), options().input.h, options().input.w}}};
}

// <u, input_grad(w, g)> = <conv(u, w), g>
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
  require_inputs(inputs, 2);
  require_operands(inputs[0], inputs[1], options());
  const Shape& x = inputs[0].shape;
  const Shape& grad_out = inputs[1].shape;
  require_divisible(x[1], options().groups, "input");
  require_divisible(grad_out[1], options().groups, "output");
  if (x[0] != grad_out[0]) throw RuleError("the input and the gradient must have the same number of samples");
  require_outputs(window_of(options(), options().kernel), spatial(x), grad_out);
  return {
      {inputs[0].dtype, Shape{grad_out[1], x[1] / options().groups, options().kernel.h, options().kernel.w}}};
}

// <u, weight_grad(x, g)> = <conv(x, u), g>
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
  return apply(std::make_shared<Conv2d>(options), {x, weights});
}

Node conv2d(Operand x, Operand weights, Operand bias, Conv2dOptions options) {
  return apply(std::make_shared<Conv2d>(options), {x, weights, bias});
}

Node conv2d_input_grad(Operand weights, Operand grad_out, Size2d input, Conv2dOptions options) {
  return apply(std::make_shared<Conv2dInputGrad>(Conv2dInputGradOptions{options, input}),
               {weights, grad_out});
}

Node conv2d_weight_grad(Operand x, Operand grad_out, Size2d kernel, Conv2dOptions options) {
  return apply(std::make_shared<Conv2dWeightGrad>(Conv2dWeightGradOptions{options, kernel}), {x, grad_out});
}

}  // namespace plexaura
