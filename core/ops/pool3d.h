#pragma once

#include <optional>

#include "core/base/export.h"
#include "core/graph/op.h"
#include "core/ops/window.h"

namespace plexaura {

struct MaxPool3dOptions {
  Size3d kernel = {};
  std::optional<Size3d> stride = {};  // distance between windows; by default the size of the kernel
  Size3d padding{0};  // at most half the kernel; an element of the padding is never chosen as the largest
  bool ceil_mode = false;  // true: last windows that begin before the end padding may reach beyond it
};

// The largest element of each window: x [N, C, D, H, W], D, H and W not 0 -> [N, C, OD, OH, OW] of which, for
// example, OH = (H + 2 padding - KH) / stride + 1, rounded down, or up in ceil mode. If several are largest, the first
// one gets the gradient. If the window has a NaN, the result is NaN. Floating.
PLEXAURA_API Node max_pool3d(Operand x, MaxPool3dOptions options);

struct AvgPool3dOptions {
  Size3d kernel = {};
  std::optional<Size3d> stride = {};  // distance between windows; by default the size of the kernel
  Size3d padding{0};                  // zeros, at most half the kernel
  // True: the sum over a window is divided by the number of its elements in the padded image. False: by the
  // number of its elements in the image.
  bool count_include_pad = true;
  bool ceil_mode = false;  // true: last windows that begin before the end padding may reach beyond it
};

// The mean of each window. Shapes as for max_pool3d().
PLEXAURA_API Node avg_pool3d(Operand x, AvgPool3dOptions options);

// The largest element, or the mean, of each of `output` windows of about the same size, which together cover the
// image: x [N, C, D, H, W] -> [N, C, output]. Along an axis window i is from i D / OD, rounded down, to (i + 1) D / OD,
// rounded up. Floating.
PLEXAURA_API Node adaptive_max_pool3d(Operand x, Size3d output);
PLEXAURA_API Node adaptive_avg_pool3d(Operand x, Size3d output);

// The options of all pooling ops over three axes.
struct Pool3dOptions {
  Window3d window = {};
  bool ceil_mode = false;
  std::optional<Size3d> output = {};  // extents of the result of adaptive pooling, which has no window
  Size3d input{0};                    // extents of the input, for gradients
  bool count_include_pad = true;      // used only for averages

  static void fields(auto& self, auto& visitor) {
    visitor("kernel", self.window.kernel);
    visitor("stride", self.window.stride);
    visitor("padding", self.window.padding);
    visitor("ceil_mode", self.ceil_mode);
    visitor("output", self.output);
    visitor("input", self.input);
    visitor("count_include_pad", self.count_include_pad, true);
  }
};

// Outputs: y; saved: the position of the largest element in its image, counted row by row, as int64 of y's shape.
class PLEXAURA_API MaxPool3d final : public OpOf<MaxPool3d, Pool3dOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "max_pool3d"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.saved_outputs = 1, .precision = Precision::follows}; }
};

// The gradient of max_pool3d() by x. Inputs: grad_out, index.
class PLEXAURA_API MaxPool3dGrad final : public OpOf<MaxPool3dGrad, Pool3dOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "max_pool3d_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

// The elements of x that `index` selects. Inputs: x, index.
class PLEXAURA_API MaxPool3dGather final : public OpOf<MaxPool3dGather, Pool3dOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "max_pool3d_gather"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

class PLEXAURA_API AvgPool3d final : public OpOf<AvgPool3d, Pool3dOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "avg_pool3d"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::follows}; }
};

// The gradient of avg_pool3d() by x. Inputs: grad_out.
class PLEXAURA_API AvgPool3dGrad final : public OpOf<AvgPool3dGrad, Pool3dOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "avg_pool3d_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

}  // namespace plexaura
