#include "core/ops/conv_transpose.h"

#include <fmt/format.h>
#include <string_view>
#include <tuple>

#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/elementwise.h"
#include "core/ops/shape.h"

namespace plexaura {

namespace {

// The user's call of one of the builders.
struct Call {
  std::string_view builder;
  Operand x;
  Operand weights;
  std::optional<Operand> bias = {};
  std::string_view axes = {};  // the names of the axes after N and C

  void require(bool holds, const std::string& rule) const {
    require_that(holds, builder, {x, weights}, rule);
  }
};

Conv2dOptions convolution_of(const ConvTranspose2dOptions& options) {
  return {options.stride, options.padding, options.dilation, options.groups, options.padding_end};
}
Conv3dOptions convolution_of(const ConvTranspose3dOptions& options) {
  return {options.stride, options.padding, options.dilation, options.groups, options.padding_end};
}

Node input_grad(const Call& call, Size2d output, const ConvTranspose2dOptions& options) {
  return conv2d_input_grad(call.weights, call.x, output, convolution_of(options));
}
Node input_grad(const Call& call, Size3d output, const ConvTranspose3dOptions& options) {
  return conv3d_input_grad(call.weights, call.x, output, convolution_of(options));
}

template <class Size>
SlidingWindow<Size> window_of(const Shape& weights, const ConvTransposeOptions<Size>& options) {
  auto kernel = list_of(Size{});
  for (std::size_t i = 0; i < kernel.size(); ++i) kernel[i] = weights[static_cast<std::int64_t>(i) + 2];
  return {std::make_from_tuple<Size>(kernel), options.stride, options.padding, options.dilation,
          options.padding_end};
}

template <class Size>
void require_options(const Call& call, const ConvTransposeOptions<Size>& options) {
  const auto rank = static_cast<std::int64_t>(list_of(Size{}).size()) + 2;
  call.require(call.x.node().shape().rank() == rank && call.weights.node().shape().rank() == rank,
               fmt::format("the input and the weights need {} axes, the last ones {}; reshape them",
                           2 + call.axes.size(), call.axes));
  try {
    window_of(call.weights.node().shape(), options).check();
  } catch (const RuleError& rule) {
    call.require(false, rule.what());
  }
  for (std::size_t i = 0; i < list_of(Size{}).size(); ++i) {
    const std::int64_t added = list_of(options.output_padding)[i];
    const std::int64_t stride = list_of(options.stride)[i];
    call.require(added >= 0 && added < stride,
                 fmt::format("output_padding must be 0 or more and less than the stride, {}; it is {}",
                             stride, added));
  }
}

template <class Size>
Size output_of_transpose(const Call& call, const ConvTransposeOptions<Size>& options) {
  const auto window = window_of(call.weights.node().shape(), options);
  const auto cut_end = list_of(options.padding_end.value_or(options.padding));
  auto output = list_of(Size{});
  for (std::size_t i = 0; i < output.size(); ++i) {
    const std::int64_t reach = list_of(window.dilation)[i] * (list_of(window.kernel)[i] - 1) + 1;
    const std::int64_t input = call.x.node().shape()[static_cast<std::int64_t>(i) + 2];
    output[i] = (input - 1) * list_of(window.stride)[i] + reach - list_of(window.padding)[i] - cut_end[i] +
                list_of(options.output_padding)[i];
    call.require(
        input > 0 && output[i] > 0,
        fmt::format("nothing is left along {}: the padding cuts off all of the result; use less padding",
                    call.axes[call.axes.size() - output.size() + i]));
  }
  return std::make_from_tuple<Size>(output);
}

template <class Size>
Node transposed(const Call& call, const ConvTransposeOptions<Size>& options) {
  require_options(call, options);
  const Node y = input_grad(call, output_of_transpose(call, options), options);
  if (!call.bias) return y;
  const Node bias = call.bias->node();
  call.require(
      bias.type() == TensorType{y.dtype(), Shape{y.shape()[1]}},
      fmt::format("the bias must have one element for each of the {} output channels, and the weights' "
                  "dtype",
                  y.shape()[1]));
  std::vector<std::int64_t> extents(list_of(Size{}).size() + 1, 1);
  extents[0] = y.shape()[1];
  return y + reshape(bias, std::move(extents));
}

template <class Size>
Node with_origin(const Call& call, const ConvTransposeOptions<Size>& options) {
  const Graph::WithOrigin guard = origin_of_caller(call.x);
  return transposed(call, options);
}

// Computes conv_transpose1d() as a transposed convolution of images with one row.
Node with_rows(Call call, const ConvTranspose1dOptions& options) {
  call.axes = "L";
  call.require(call.x.node().shape().rank() == 3 && call.weights.node().shape().rank() == 3,
               "the input and the weights need 3 axes, the last one L; reshape them");
  const Graph::WithOrigin guard = origin_of_caller(call.x);
  ConvTranspose2dOptions rows{.stride = {1, options.stride},
                              .padding = {0, options.padding},
                              .dilation = {1, options.dilation},
                              .groups = options.groups,
                              .output_padding = {0, options.output_padding}};
  if (options.padding_end) rows.padding_end = Size2d{0, *options.padding_end};
  call.x = {unsqueeze(call.x, 2), call.x.where()};
  call.weights = {unsqueeze(call.weights, 2), call.weights.where()};
  call.axes = "HL";
  return squeeze(transposed(call, rows), {2});
}

}  // namespace

Node conv_transpose1d(Operand x, Operand weights, ConvTranspose1dOptions options) {
  return with_rows({"conv_transpose1d", x, weights}, options);
}

Node conv_transpose1d(Operand x, Operand weights, Operand bias, ConvTranspose1dOptions options) {
  return with_rows({"conv_transpose1d", x, weights, bias}, options);
}

Node conv_transpose2d(Operand x, Operand weights, ConvTranspose2dOptions options) {
  return with_origin({"conv_transpose2d", x, weights, {}, "HW"}, options);
}

Node conv_transpose2d(Operand x, Operand weights, Operand bias, ConvTranspose2dOptions options) {
  return with_origin({"conv_transpose2d", x, weights, bias, "HW"}, options);
}

Node conv_transpose3d(Operand x, Operand weights, ConvTranspose3dOptions options) {
  return with_origin({"conv_transpose3d", x, weights, {}, "DHW"}, options);
}

Node conv_transpose3d(Operand x, Operand weights, Operand bias, ConvTranspose3dOptions options) {
  return with_origin({"conv_transpose3d", x, weights, bias, "DHW"}, options);
}

}  // namespace plexaura
