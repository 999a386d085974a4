#pragma once

#include <optional>

#include "core/base/export.h"
#include "core/graph/op.h"
#include "core/ops/window.h"

namespace plexaura {

struct MaxPool2dOptions {
  Size2d kernel = {};
  std::optional<Size2d> stride = {};  // distance between windows; by default the size of the kernel
  Size2d padding{0, 0};  // at most half the kernel; an element of the padding is never chosen as the largest
  bool ceil_mode = false;  // true: last windows that begin before the end padding may reach beyond it
};

// The largest element of each window: x [N, C, H, W], H and W not 0 -> [N, C, OH, OW] with OH = (H + 2
// padding - KH) / stride + 1, rounded down, or up in ceil mode. If several are largest, the first one gets the
// gradient. If the window has a NaN, the result is NaN. Windows have at most 255 elements, unless ceil mode has to be
// computed by max_pool3d(). Floating.
PLEXAURA_API Node max_pool2d(Operand x, MaxPool2dOptions options);
// max_pool2d() with a square window of this size.
inline Node max_pool2d(Operand x, WrittenInteger auto kernel) { return max_pool2d(x, {.kernel = kernel}); }

// The gradient of max_pool2d() by x: grad_out goes to the elements that `index` selects. -> [N, C, H, W];
// `input` is H and W. Not in ceil mode.
PLEXAURA_API Node max_pool2d_grad(Operand grad_out, Operand index, Size2d input, MaxPool2dOptions options);

// The elements of x that `index` selects: max_pool2d() with a selection made earlier. Not in ceil mode.
PLEXAURA_API Node max_pool2d_gather(Operand x, Operand index, MaxPool2dOptions options);

struct AvgPool2dOptions {
  Size2d kernel = {};
  std::optional<Size2d> stride = {};  // distance between windows; by default the size of the kernel
  Size2d padding{0, 0};               // zeros, at most half the kernel
  // True: the sum over a window is divided by the number of its elements in the padded image. False: by the
  // number of its elements in the image.
  bool count_include_pad = true;
  bool ceil_mode = false;  // true: last windows that begin before the end padding may reach beyond it
};

// The mean of each window. Shapes as for max_pool2d().
PLEXAURA_API Node avg_pool2d(Operand x, AvgPool2dOptions options);
inline Node avg_pool2d(Operand x, WrittenInteger auto kernel) { return avg_pool2d(x, {.kernel = kernel}); }

// The gradient of avg_pool2d() by x: -> [N, C, H, W]; `input` is H and W. Not in ceil mode.
PLEXAURA_API Node avg_pool2d_grad(Operand grad_out, Size2d input, AvgPool2dOptions options);

// The mean over all axes after the first two: [N, C, ...] -> [N, C].
PLEXAURA_API Node global_avg_pool(Operand x);

// The options of all pooling ops.
struct PoolOptions {
  Window2d window = {};
  Size2d input{0, 0};             // height and width of the input, for gradients
  bool count_include_pad = true;  // used only for averages

  static void fields(auto& self, auto& visitor) {
    visitor("kernel", self.window.kernel);
    visitor("stride", self.window.stride);
    visitor("padding", self.window.padding);
    visitor("input", self.input);
    visitor("count_include_pad", self.count_include_pad, true);
  }
};

// The base of all pooling ops.
class PLEXAURA_API PoolOp : public OpOf<PoolOp, PoolOptions> {
 public:
  PoolOp(std::string_view name, PoolOptions options) : OpOf(options), name_(name) {}

  std::string_view name() const override { return name_; }
  const Window2d& window() const { return options().window; }
  virtual void compute(const HostCall& call) const = 0;

 protected:
  // Returns the type of the pooled value. Throws RuleError for a wrong window or input.
  TensorType pooled(const TensorType& x) const;
  // Returns the type of the input that is pooled to a value of type `y`. Throws RuleError if there is none.
  TensorType unpooled(const TensorType& y) const;

 private:
  std::string_view name_;  // text with static storage
};

// Outputs: y; saved: the place of the largest element in its window, counted row by row, as uint8 of y's
// shape.
class PLEXAURA_API MaxPool2dOp final : public PoolOp {
 public:
  explicit MaxPool2dOp(PoolOptions options) : PoolOp("max_pool2d", options) {}
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const override;
  OpTraits traits() const override { return {.saved_outputs = 1, .precision = Precision::follows}; }
};

// Inputs: grad_out, index.
class PLEXAURA_API MaxPool2dGrad final : public PoolOp {
 public:
  explicit MaxPool2dGrad(PoolOptions options) : PoolOp("max_pool2d_grad", options) {}
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const override;
};

// Inputs: x, index.
class PLEXAURA_API MaxPool2dGather final : public PoolOp {
 public:
  explicit MaxPool2dGather(PoolOptions options) : PoolOp("max_pool2d_gather", options) {}
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const override;
};

class PLEXAURA_API AvgPool2dOp final : public PoolOp {
 public:
  explicit AvgPool2dOp(PoolOptions options) : PoolOp("avg_pool2d", options) {}
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const override;
  OpTraits traits() const override { return {.precision = Precision::follows}; }
};

// Inputs: grad_out.
class PLEXAURA_API AvgPool2dGrad final : public PoolOp {
 public:
  explicit AvgPool2dGrad(PoolOptions options) : PoolOp("avg_pool2d_grad", options) {}
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const override;
};

}  // namespace plexaura
