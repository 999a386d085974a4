#pragma once

#include <optional>

#include "core/base/export.h"
#include "core/graph/op.h"
#include "core/ops/window.h"

namespace plexaura {

struct Conv3dOptions {
  Size3d stride = {};
  Size3d padding{0, 0, 0};  // zeros, on both sides of an axis
  Size3d dilation = {};     // distance between neighbouring elements of the kernel
  // Input and output channels are divided into this many groups; each group is convolved separately.
  std::int64_t groups = 1;
  // The number of zeros at the end of each axis. If it is set, `padding` is the number at the beginning only.
  std::optional<Size3d> padding_end = {};

  static void fields(auto& self, auto& visitor) {
    visitor("stride", self.stride);
    visitor("padding", self.padding);
    visitor("dilation", self.dilation);
    visitor("groups", self.groups);
    visitor("padding_end", self.padding_end);
  }
};

// Convolution, more exactly cross-correlation:
//   y[n, o, h, i, j] = bias[o] + sum over c, e, a, b of
//     x[n, c, h stride - padding + e dilation, i stride ..., j stride ...] weights[o, c, e, a, b]
// x [N, C, D, H, W]; weights [O, C / groups, KD, KH, KW]; bias [O] -> [N, O, OD, OH, OW], of which, for example,
//   OH = (H + padding + padding_end - dilation (KH - 1) - 1) / stride + 1, rounded down. Floating, one dtype.
PLEXAURA_API Node conv3d(Operand x, Operand weights, Conv3dOptions options = {});
PLEXAURA_API Node conv3d(Operand x, Operand weights, Operand bias, Conv3dOptions options = {});

// The gradient of conv3d() by x, also known as transposed convolution: grad_out [N, O, OD, OH, OW] ->
// [N, C, D, H, W]; `input` is D, H and W.
PLEXAURA_API Node conv3d_input_grad(Operand weights, Operand grad_out, Size3d input, Conv3dOptions options);

// The gradient of conv3d() by the weights: -> [O, C / groups, KD, KH, KW]; `kernel` is KD, KH and KW.
PLEXAURA_API Node conv3d_weight_grad(Operand x, Operand grad_out, Size3d kernel, Conv3dOptions options);

// Inputs: x, weights and, optionally, bias.
class PLEXAURA_API Conv3dOp final : public OpOf<Conv3dOp, Conv3dOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "conv3d"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::narrow}; }
};

struct Conv3dInputGradOptions : Conv3dOptions {
  Size3d input = {};

  static void fields(auto& self, auto& visitor) {
    visitor("input", self.input);
    Conv3dOptions::fields(self, visitor);
  }
};

// Inputs: weights, grad_out.
class PLEXAURA_API Conv3dInputGrad final : public OpOf<Conv3dInputGrad, Conv3dInputGradOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "conv3d_input_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::narrow}; }
};

struct Conv3dWeightGradOptions : Conv3dOptions {
  Size3d kernel = {};

  static void fields(auto& self, auto& visitor) {
    visitor("kernel", self.kernel);
    Conv3dOptions::fields(self, visitor);
  }
};

// Inputs: x, grad_out.
class PLEXAURA_API Conv3dWeightGrad final : public OpOf<Conv3dWeightGrad, Conv3dWeightGradOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "conv3d_weight_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

}  // namespace plexaura
