#pragma once

#include <fmt/format.h>

#include "core/loops/gemm.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/elementwise.h"

namespace plexaura {

// Shape rules and reference kernels of the convolutions over two and over three axes.

inline Size2d spatial_of(const Shape& shape, const Conv2dOptions&) { return spatial(shape); }
inline Size3d spatial_of(const Shape& shape, const Conv3dOptions&) { return spatial_3d(shape); }
inline void require_convolved(const TensorType& type, const Conv2dOptions&) { require_nchw(type); }
inline void require_convolved(const TensorType& type, const Conv3dOptions&) { require_ncdhw(type); }

template <class Options>
class ConvolutionRules {
 public:
  using Size = decltype(Options::stride);

  explicit ConvolutionRules(const Options& options) : options_(options) {}

  // Inputs: x, weights and, optionally, bias.
  TensorType output(std::span<const TensorType> inputs) const {
    require_inputs(inputs, inputs.size() == 3 ? 3 : 2);
    require_operands(inputs[0], inputs[1]);
    const Shape& x = inputs[0].shape;
    const Shape& weights = inputs[1].shape;
    if (x[1] != input_channels(weights))
      throw RuleError(fmt::format(
          "the input has {} channels and the weights expect {} (their second extent times groups); "
          "make them equal",
          x[1], input_channels(weights)));
    require_divisible(weights[0], "output");
    if (inputs.size() == 3 && inputs[2] != TensorType{inputs[0].dtype, Shape{weights[0]}})
      throw RuleError(fmt::format(
          "the bias must have one element for each of the {} output channels, and the weights' dtype",
          weights[0]));
    return value(inputs[0].dtype, x[0], weights[0], window(pixels(weights)).outputs(pixels(x)));
  }

  // Inputs: weights, grad_out.
  TensorType input_grad(std::span<const TensorType> inputs, Size input) const {
    require_inputs(inputs, 2);
    require_operands(inputs[0], inputs[1]);
    const Shape& weights = inputs[0].shape;
    const Shape& grad_out = inputs[1].shape;
    require_divisible(weights[0], "output");
    if (grad_out[1] != weights[0])
      throw RuleError(fmt::format("the gradient has {} channels and the weights give {}; make them equal",
                                  grad_out[1], weights[0]));
    require_outputs(window(pixels(weights)), input, grad_out);
    return value(inputs[0].dtype, grad_out[0], input_channels(weights), input);
  }

  // Inputs: x, grad_out.
  TensorType weight_grad(std::span<const TensorType> inputs, Size kernel) const {
    require_inputs(inputs, 2);
    require_operands(inputs[0], inputs[1]);
    const Shape& x = inputs[0].shape;
    const Shape& grad_out = inputs[1].shape;
    require_divisible(x[1], "input");
    require_divisible(grad_out[1], "output");
    if (x[0] != grad_out[0])
      throw RuleError("the input and the gradient must have the same number of samples");
    require_outputs(window(kernel), pixels(x), grad_out);
    return value(inputs[0].dtype, grad_out[1], x[1] / options_.groups, kernel);
  }

 private:
  Size pixels(const Shape& shape) const { return spatial_of(shape, options_); }

  SlidingWindow<Size> window(Size kernel) const {
    return {kernel, options_.stride, options_.padding, options_.dilation, options_.padding_end};
  }

  static TensorType value(DType dtype, std::int64_t samples, std::int64_t channels, Size size) {
    std::vector<std::int64_t> extents{samples, channels};
    for (const std::int64_t extent : list_of(size)) extents.push_back(extent);
    return {dtype, Shape(std::move(extents))};
  }

  // Checks x and weights, or grad_out in place of one of them: both must have one floating dtype and the axes
  // of a convolution.
  void require_operands(const TensorType& a, const TensorType& b) const {
    require_floating(a);
    require_same_dtype(a, b);
    require_convolved(a, options_);
    require_convolved(b, options_);
    if (options_.groups < 1)
      throw RuleError(fmt::format("groups must be 1 or more, not {}", options_.groups));
  }

  std::int64_t input_channels(const Shape& weights) const {
    std::int64_t channels = 0;
    if (__builtin_mul_overflow(weights[1], options_.groups, &channels))
      throw RuleError(fmt::format("{} groups of {} channels are more than a 64-bit number can count",
                                  options_.groups, weights[1]));
    return channels;
  }

  void require_divisible(std::int64_t channels, std::string_view which) const {
    if (channels % options_.groups != 0)
      throw RuleError(fmt::format("the {} {} channels must be divisible by groups ({})", channels, which,
                                  options_.groups));
  }

  void require_outputs(const SlidingWindow<Size>& window, Size input, const Shape& grad_out) const {
    const Size expected = window.outputs(input);
    if (pixels(grad_out) != expected)
      throw RuleError(fmt::format("the gradient must have the spatial extents of the output, {}",
                                  fmt::join(list_of(expected), " x ")));
  }

  const Options& options_;
};

// The same convolution of images of depth 1. A kernel needs no padding at the end, since it knows the output's shape.
inline Conv3dOptions lifted(const Conv2dOptions& options) {
  return {with_depth(options.stride, 1), with_depth(options.padding, 0), with_depth(options.dilation, 1),
          options.groups};
}

// The reference kernels of a convolution and of its gradients by the input and by the weights. Values have the
// axes N, C, D, H and W, or N, C, H and W, with D = 1. `add` multiplies tiles of float64 and float32.
PLEXAURA_API void convolve(const HostCall& call, const Conv3dOptions& options,
                           portable::AddTile<double> add = portable::add_tile<double>);
PLEXAURA_API void convolution_input_grad(const HostCall& call, const Conv3dOptions& options,
                                         portable::AddTile<double> add = portable::add_tile<double>);
PLEXAURA_API void convolution_weight_grad(const HostCall& call, const Conv3dOptions& options,
                                          portable::AddTile<double> add = portable::add_tile<double>);

}  // namespace plexaura
