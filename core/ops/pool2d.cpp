#include "core/ops/pool2d.h"

#include <fmt/format.h>

#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"

namespace plexaura {

namespace {

template <class Options>
Window2d pool_window(const Options& options) {
  return {options.kernel, options.stride.value_or(options.kernel), options.padding, {}};
}

MaxPool2dOptions max_options(const Window2d& window) {
  return {window.kernel, window.stride, window.padding};
}

AvgPool2dOptions avg_options(const Window2d& window, bool count_include_pad) {
  return {window.kernel, window.stride, window.padding, count_include_pad};
}

void require_window(const Window2d& window) {
  window.check();
  if (2 * window.padding.h > window.kernel.h || 2 * window.padding.w > window.kernel.w)
    throw RuleError("the padding may be at most half the kernel, so that every window sees the input");
}

void require_pixels(Size2d input) {
  if (input.h < 1 || input.w < 1)
    throw RuleError(fmt::format(
        "the image must have a height and a width of 1 or more (here {} x {}): a window over nothing has no "
        "largest element and no mean",
        input.h, input.w));
}

void require_small(const Window2d& window) {
  window.check();
  if (window.kernel.h * window.kernel.w > 255)
    throw RuleError(fmt::format(
        "a window of max_pool2d may have at most 255 elements and {} x {} has more; pool in two steps",
        window.kernel.h, window.kernel.w));
}

void require_index(const TensorType& index, const TensorType& pooled) {
  if (index != TensorType{DType::uint8, pooled.shape})
    throw RuleError(fmt::format("the index must be uint8 of the pooled shape {}: output 1 of max_pool2d",
                                to_string(pooled.shape)));
}

}  // namespace

// Averages that leave the padding out are the only ones that say so.
TensorType PoolOp::pooled(const TensorType& x) const {
  require_floating(x);
  require_nchw(x);
  require_window(window());
  require_pixels(spatial(x.shape));
  const Size2d out = window().outputs(spatial(x.shape));
  return {x.dtype, Shape{x.shape[0], x.shape[1], out.h, out.w}};
}

TensorType PoolOp::unpooled(const TensorType& y) const {
  require_floating(y);
  require_nchw(y);
  require_window(window());
  require_pixels(options().input);
  const Size2d expected = window().outputs(options().input);
  if (spatial(y.shape) != expected)
    throw RuleError(fmt::format("the gradient must have the height and width of the output, {} x {}",
                                expected.h, expected.w));
  return {y.dtype, Shape{y.shape[0], y.shape[1], options().input.h, options().input.w}};
}

std::vector<TensorType> MaxPool2d::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  require_small(window());
  const TensorType y = pooled(inputs[0]);
  return {y, {DType::uint8, y.shape}};
}

std::vector<Node> MaxPool2d::vjp(const VjpRequest& request) const {
  const Size2d input = spatial(request.inputs[0].shape());
  return {max_pool2d_grad(request.grad_outputs[0], request.outputs[1], input, max_options(window()))};
}

std::vector<TensorType> MaxPool2dGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_small(window());
  require_index(inputs[1], inputs[0]);
  return {unpooled(inputs[0])};
}

std::vector<Node> MaxPool2dGrad::vjp(const VjpRequest& request) const {
  return {max_pool2d_gather(request.grad_outputs[0], request.inputs[1], max_options(window())), Node()};
}

std::vector<TensorType> MaxPool2dGather::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_small(window());
  const TensorType y = pooled(inputs[0]);
  require_index(inputs[1], y);
  return {y};
}

std::vector<Node> MaxPool2dGather::vjp(const VjpRequest& request) const {
  const Size2d input = spatial(request.inputs[0].shape());
  return {max_pool2d_grad(request.grad_outputs[0], request.inputs[1], input, max_options(window())), Node()};
}

std::vector<TensorType> AvgPool2d::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  return {pooled(inputs[0])};
}

std::vector<Node> AvgPool2d::vjp(const VjpRequest& request) const {
  const Size2d input = spatial(request.inputs[0].shape());
  return {
      avg_pool2d_grad(request.grad_outputs[0], input, avg_options(window(), options().count_include_pad))};
}

std::vector<TensorType> AvgPool2dGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  return {unpooled(inputs[0])};
}

std::vector<Node> AvgPool2dGrad::vjp(const VjpRequest& request) const {
  return {avg_pool2d(request.grad_outputs[0], avg_options(window(), options().count_include_pad))};
}

Node max_pool2d(Operand x, MaxPool2dOptions options) {
  return apply(std::make_shared<MaxPool2d>(PoolOptions{pool_window(options)}), {x});
}

Node max_pool2d_grad(Operand grad_out, Operand index, Size2d input, MaxPool2dOptions options) {
  return apply(std::make_shared<MaxPool2dGrad>(PoolOptions{pool_window(options), input}), {grad_out, index});
}

Node max_pool2d_gather(Operand x, Operand index, MaxPool2dOptions options) {
  return apply(std::make_shared<MaxPool2dGather>(PoolOptions{pool_window(options)}), {x, index});
}

Node avg_pool2d(Operand x, AvgPool2dOptions options) {
  return apply(
      std::make_shared<AvgPool2d>(PoolOptions{pool_window(options), {0, 0}, options.count_include_pad}), {x});
}

Node avg_pool2d_grad(Operand grad_out, Size2d input, AvgPool2dOptions options) {
  return apply(
      std::make_shared<AvgPool2dGrad>(PoolOptions{pool_window(options), input, options.count_include_pad}),
      {grad_out});
}

Node global_avg_pool(Operand x) { return mean(x, {.axes = {2, 3}}); }

}  // namespace plexaura
