#pragma once

#include <optional>

#include "core/export.h"
#include "core/graph/op.h"
#include "core/ops/window.h"

namespace plexaura {

struct MaxPool2dOptions {
  Size2d kernel = {};
  std::optional<Size2d> stride = {};  // the kernel's size where nothing is said
  Size2d padding{0, 0};               // at most half the kernel; what lies outside is never the largest
};

// The largest element of each window: x [N, C, H, W] -> [N, C, OH, OW] with OH = (H + 2 padding - KH) /
// stride + 1. The first of several largest receives the gradient; a NaN in the window is the result. Windows
// have at most 255 elements. Floating.
PLEXAURA_API Node max_pool2d(Operand x, MaxPool2dOptions options);

// The adjoint of max_pool2d at fixed places: grad_out goes to the element that `index` names. -> [N, C, H,
// W]; `input` is H and W.
PLEXAURA_API Node max_pool2d_grad(Operand grad_out, Operand index, Size2d input, MaxPool2dOptions options);

// The elements of x that `index` names: max_pool2d with its choices made already.
PLEXAURA_API Node max_pool2d_gather(Operand x, Operand index, MaxPool2dOptions options);

struct AvgPool2dOptions {
  Size2d kernel = {};
  std::optional<Size2d> stride = {};  // the kernel's size where nothing is said
  Size2d padding{0, 0};               // zeros, at most half the kernel
  bool count_include_pad = true;  // divide by the size of the window, and not by how much of it lies inside
};

// The mean of each window. Shapes as for max_pool2d.
PLEXAURA_API Node avg_pool2d(Operand x, AvgPool2dOptions options);

// The adjoint of avg_pool2d: -> [N, C, H, W]; `input` is H and W.
PLEXAURA_API Node avg_pool2d_grad(Operand grad_out, Size2d input, AvgPool2dOptions options);

// The mean over H and W: [N, C, H, W] -> [N, C].
PLEXAURA_API Node global_avg_pool(Operand x);

// What the pooling ops have in common: a window, and for those that go back the height and width of the
// input.
class PLEXAURA_API PoolOp : public Op {
 public:
  PoolOp(std::string_view name, Window2d window, Size2d input)
      : name_(name), window_(window), input_(input) {}

  std::string_view name() const override { return name_; }
  void describe(Description& description) const override;
  const Window2d& window() const { return window_; }
  Size2d input() const { return input_; }

 protected:
  // Throws RuleError for a wrong window; the type of the pooled value.
  TensorType pooled(const TensorType& x) const;
  // The type of the value that pools to `y`.
  TensorType unpooled(const TensorType& y) const;

 private:
  std::string_view name_;  // of static storage
  Window2d window_;
  Size2d input_;
};

// Outputs: y; saved: the place of the largest element in its window, row by row, as uint8 of y's shape.
class PLEXAURA_API MaxPool2d final : public PoolOp {
 public:
  explicit MaxPool2d(Window2d window) : PoolOp("max_pool2d", window, {0, 0}) {}
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  OpTraits traits() const override { return {.saved_outputs = 1}; }
};

// Inputs: grad_out, index.
class PLEXAURA_API MaxPool2dGrad final : public PoolOp {
 public:
  MaxPool2dGrad(Window2d window, Size2d input) : PoolOp("max_pool2d_grad", window, input) {}
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
};

// Inputs: x, index.
class PLEXAURA_API MaxPool2dGather final : public PoolOp {
 public:
  explicit MaxPool2dGather(Window2d window) : PoolOp("max_pool2d_gather", window, {0, 0}) {}
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
};

class PLEXAURA_API AvgPool2d final : public PoolOp {
 public:
  AvgPool2d(Window2d window, bool count_include_pad)
      : PoolOp("avg_pool2d", window, {0, 0}), count_include_pad_(count_include_pad) {}
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void describe(Description& description) const override;
  bool count_include_pad() const { return count_include_pad_; }

 private:
  bool count_include_pad_;
};

// Inputs: grad_out.
class PLEXAURA_API AvgPool2dGrad final : public PoolOp {
 public:
  AvgPool2dGrad(Window2d window, Size2d input, bool count_include_pad)
      : PoolOp("avg_pool2d_grad", window, input), count_include_pad_(count_include_pad) {}
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void describe(Description& description) const override;
  bool count_include_pad() const { return count_include_pad_; }

 private:
  bool count_include_pad_;
};

}  // namespace plexaura
