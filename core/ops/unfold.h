#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"
#include "core/ops/window.h"

namespace plexaura {

struct UnfoldOptions {
  std::int64_t axis = 0;      // negative numbers count from the end
  std::int64_t size = 1;      // number of elements of a window
  std::int64_t step = 1;      // distance between the starts of neighbouring windows
  std::int64_t dilation = 1;  // distance between neighbouring elements of a window
  static void fields(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("size", self.size);
    visitor("step", self.step);
    visitor("dilation", self.dilation);
  }
};

// The windows of an axis, with the elements of each window along a new last axis: x [A..., N, B...] ->
// [A..., L, B..., size], with L = (N - dilation (size - 1) - 1) / step + 1, rounded down. At least one window must
// fit. size, step and dilation are 1 or more. Any dtype.
PLEXAURA_API Node unfold(Operand x, UnfoldOptions options);

// The sum of overlapping windows, which is the gradient of unfold(): windows [A..., L, B..., size] ->
// [A..., extent, B...]. Elements of no window are 0. L must be the number of windows of an axis of this extent.
// `options.size` must be the extent of the last axis. Numbers of any dtype but bool; 16-bit floats are added up in
// float32.
PLEXAURA_API Node fold(Operand windows, std::int64_t extent, UnfoldOptions options);

// The windows of a convolution as columns: x [N, C, H, W] -> [N, C kernel.h kernel.w, L], where L is the number of
// places of the window. Padding adds zeros. PyTorch's nn.functional.unfold. Any dtype.
PLEXAURA_API Node im2col(Operand x, const Window2d& window);

// The sum of overlapping windows: columns [N, C kernel.h kernel.w, L] -> [N, C, size.h, size.w]. It is the gradient
// of im2col(). PyTorch's nn.functional.fold. Numbers of any dtype but bool.
PLEXAURA_API Node col2im(Operand columns, Size2d size, const Window2d& window);

// The op of unfold(). Its axis is counted from the front.
class PLEXAURA_API Unfold final : public OpOf<Unfold, UnfoldOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "unfold"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::follows}; }
};

struct FoldOptions : UnfoldOptions {
  std::int64_t extent = 0;
  static void fields(auto& self, auto& visitor) {
    UnfoldOptions::fields(self, visitor);
    visitor("extent", self.extent);
  }
};

// The op of fold(). Its axis is counted from the front.
class PLEXAURA_API Fold final : public OpOf<Fold, FoldOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "fold"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

}  // namespace plexaura
