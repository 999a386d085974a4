#pragma once

#include <optional>

#include "core/base/export.h"
#include "core/graph/op.h"
#include "core/ops/window.h"

namespace plexaura {

struct Conv2dOptions {
  Size2d stride = {};
  Size2d padding{0, 0};  // zeros, on both sides of an axis
  Size2d dilation = {};  // distance between neighbouring elements of the kernel
  // Input and output channels are divided into this many groups; each group is convolved separately.
  std::int64_t groups = 1;
  // The number of zeros at the end of each axis. If it is set, `padding` is the number at the beginning only.
  std::optional<Size2d> padding_end = {};

  static void fields(auto& self, auto& visitor) {
    visitor("stride", self.stride);
    visitor("padding", self.padding);
    visitor("dilation", self.dilation);
    visitor("groups", self.groups);
    visitor("padding_end", self.padding_end);
  }
};

// Convolution, more exactly cross-correlation:
//   y[n, o, i, j] = bias[o] + sum over c, a, b of
//     x[n, c, i stride - padding + a dilation, j stride - padding + b dilation] weights[o, c, a, b]
// x [N, C, H, W]; weights [O, C / groups, KH, KW]; bias [O] -> [N, O, OH, OW] with
//   OH = (H + padding + padding_end - dilation (KH - 1) - 1) / stride + 1, rounded down. Floating, one dtype.
PLEXAURA_API Node conv2d(Operand x, Operand weights, Conv2dOptions options = {});
PLEXAURA_API Node conv2d(Operand x, Operand weights, Operand bias, Conv2dOptions options = {});

// The gradient of conv2d() by x, also known as transposed convolution: grad_out [N, O, OH, OW] -> [N, C, H,
// W]; `input` is H and W.
PLEXAURA_API Node conv2d_input_grad(Operand weights, Operand grad_out, Size2d input, Conv2dOptions options);

// The gradient of conv2d() by the weights: -> [O, C / groups, KH, KW]; `kernel` is KH and KW.
PLEXAURA_API Node conv2d_weight_grad(Operand x, Operand grad_out, Size2d kernel, Conv2dOptions options);

// Inputs: x, weights and, optionally, bias.
class PLEXAURA_API Conv2dOp final : public OpOf<Conv2dOp, Conv2dOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "conv2d"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::narrow}; }
};

struct Conv2dInputGradOptions : Conv2dOptions {
  Size2d input = {};

  static void fields(auto& self, auto& visitor) {
    visitor("input", self.input);
    Conv2dOptions::fields(self, visitor);
  }
};

// Inputs: weights, grad_out.
class PLEXAURA_API Conv2dInputGrad final : public OpOf<Conv2dInputGrad, Conv2dInputGradOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "conv2d_input_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::narrow}; }
};

struct Conv2dWeightGradOptions : Conv2dOptions {
  Size2d kernel = {};

  static void fields(auto& self, auto& visitor) {
    visitor("kernel", self.kernel);
    Conv2dOptions::fields(self, visitor);
  }
};

// Inputs: x, grad_out.
class PLEXAURA_API Conv2dWeightGrad final : public OpOf<Conv2dWeightGrad, Conv2dWeightGradOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "conv2d_weight_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

}  // namespace plexaura
