#include "models/layers/conv2d.h"

#include <cmath>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/ops/conv2d.h"

namespace plexaura::layers {

namespace {

Shape weight_shape(std::int64_t in, std::int64_t out, Size2d kernel, std::int64_t groups) {
  if (groups < 1 || in % groups != 0 || out % groups != 0)
    throw UserError(fmt::format(
        "a convolution of {} to {} channels cannot have {} groups; the groups must divide both evenly", in,
        out, groups));
  return {out, in / groups, kernel.h, kernel.w};
}

Initialiser within_fan_in(const Shape& weight) {
  const std::int64_t fan_in = weight[1] * weight[2] * weight[3];
  return Initialiser::uniform(1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(fan_in, 1))));
}

}  // namespace

Conv2d::Conv2d(std::int64_t in, std::int64_t out, Size2d kernel, const Conv2dOptions& options)
    : options_(options), weight_(weight_shape(in, out, kernel, options.groups), options.weight) {
  if (options_.bias)
    bias_ =
        std::make_unique<Parameter>(Shape{out}, options_.bias_start.value_or(within_fan_in(weight_.shape())));
}

void Conv2d::members(MemberVisitor& visit) {
  visit("weight", weight_);
  visit("bias", bias_);
}

Node Conv2d::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  Graph& graph = x.node().graph();
  const plexaura::Conv2dOptions options{options_.stride, options_.padding, options_.dilation,
                                        options_.groups};
  const Node weight = weight_.in(graph);
  return bias_ ? conv2d(x, weight, bias_->in(graph), options) : conv2d(x, weight, options);
}

}  // namespace plexaura::layers
