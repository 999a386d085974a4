#include "models/layers/convolution.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/ops/conv1d.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/conv_transpose.h"

namespace plexaura::layers {

namespace {

void check_groups(std::int64_t in, std::int64_t out, std::int64_t groups) {
  if (groups < 1 || in % groups != 0 || out % groups != 0)
    throw UserError(fmt::format(
        "a convolution of {} to {} channels cannot have {} groups; the groups must divide both evenly", in,
        out, groups));
}

std::vector<std::int64_t> extents_of(std::int64_t kernel) { return {kernel}; }
std::vector<std::int64_t> extents_of(Size2d kernel) { return {kernel.h, kernel.w}; }
std::vector<std::int64_t> extents_of(Size3d kernel) { return {kernel.d, kernel.h, kernel.w}; }

// Returns the shape of a weight [first, second / groups, kernel...].
template <class Size>
Shape filter_shape(std::int64_t first, std::int64_t second, std::int64_t groups, Size kernel) {
  check_groups(first, second, groups);
  std::vector<std::int64_t> extents = extents_of(kernel);
  extents.insert(extents.begin(), {first, second / groups});
  return Shape(std::move(extents));
}

// Returns the bias for a layer with this weight, or null if the layer has none.
template <class Options>
std::unique_ptr<Parameter> bias_beside(const Shape& weight, std::int64_t out, const Options& options) {
  if (!options.bias) return nullptr;
  std::int64_t fan_in = 1;
  for (std::int64_t axis = 1; axis < weight.rank(); ++axis) fan_in *= weight[axis];
  const double limit = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(fan_in, 1)));
  return std::make_unique<Parameter>(Shape{out}, options.bias_start.value_or(Initialiser::uniform(limit)));
}

// Calls `op(x, weight, bias, options)`, or without a bias `op(x, weight, options)`.
template <class Op, class Options>
Node with_bias(const Op& op, const Operand& x, const Parameter& weight,
               const std::unique_ptr<Parameter>& bias, const Options& options) {
  Graph& graph = x.node().graph();
  const Node filter = weight.in(graph);
  return bias ? op(x, filter, bias->in(graph), options) : op(x, filter, options);
}

template <class Size>
using OpOptions = std::conditional_t<
    std::same_as<Size, Size2d>, plexaura::Conv2dOptions,
    std::conditional_t<std::same_as<Size, Size3d>, plexaura::Conv3dOptions, plexaura::Conv1dOptions>>;

template <class Size, class... Operands>
Node convolve(const Operands&... operands) {
  if constexpr (std::same_as<Size, Size2d>)
    return conv2d(operands...);
  else if constexpr (std::same_as<Size, Size3d>)
    return conv3d(operands...);
  else
    return conv1d(operands...);
}

template <class Size, class... Operands>
Node convolve_transposed(const Operands&... operands) {
  if constexpr (std::same_as<Size, Size2d>)
    return conv_transpose2d(operands...);
  else if constexpr (std::same_as<Size, Size3d>)
    return conv_transpose3d(operands...);
  else
    return conv_transpose1d(operands...);
}

}  // namespace

template <class Size>
Convolution<Size>::Convolution(std::int64_t in, std::int64_t out, Size kernel,
                               const ConvOptions<Size>& options)
    : options_(options),
      weight_(filter_shape(out, in, options.groups, kernel), options.weight),
      bias_(bias_beside(weight_.shape(), out, options)) {}

template <class Size>
void Convolution<Size>::members(MemberVisitor& visit) {
  visit("weight", weight_);
  visit("bias", bias_);
}

template <class Size>
Node Convolution<Size>::operator()(Operand x) const {
  const auto call = this->enter_unseen(x);
  const OpOptions<Size> options{options_.stride, options_.padding, options_.dilation, options_.groups};
  return with_bias([](const auto&... operands) { return convolve<Size>(operands...); }, x, weight_, bias_,
                   options);
}

template <class Size>
TransposedConvolution<Size>::TransposedConvolution(std::int64_t in, std::int64_t out, Size kernel,
                                                   const TransposedConvOptions<Size>& options)
    : options_(options),
      weight_(filter_shape(in, out, options.groups, kernel), options.weight),
      bias_(bias_beside(weight_.shape(), out, options)) {}

template <class Size>
void TransposedConvolution<Size>::members(MemberVisitor& visit) {
  visit("weight", weight_);
  visit("bias", bias_);
}

template <class Size>
Node TransposedConvolution<Size>::operator()(Operand x) const {
  const auto call = this->enter_unseen(x);
  const ConvTransposeOptions<Size> options{options_.stride, options_.padding, options_.dilation,
                                           options_.groups, options_.output_padding};
  return with_bias([](const auto&... operands) { return convolve_transposed<Size>(operands...); }, x, weight_,
                   bias_, options);
}

template class Convolution<std::int64_t>;
template class Convolution<Size2d>;
template class Convolution<Size3d>;
template class TransposedConvolution<std::int64_t>;
template class TransposedConvolution<Size2d>;
template class TransposedConvolution<Size3d>;

}  // namespace plexaura::layers
