#pragma once

#include <optional>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// Selects indices of an axis: start, start + step, ... up to but not including stop, as in Python. Negative
// indices count from the end. By default, start is the first index and stop is after the last one; for a
// negative step, start is the last index and stop is before the first one. Indices outside of the axis are
// left out.
struct SliceOptions {
  std::int64_t axis = 0;  // negative numbers count from the end
  std::optional<std::int64_t> start = {};
  std::optional<std::int64_t> stop = {};
  std::int64_t step = 1;  // not 0; a negative step reverses the order

  static void fields(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("start", self.start);
    visitor("stop", self.stop);
    visitor("step", self.step);
  }
};

// The elements of x at the indices of one axis that `options` selects, and all elements along the other axes. Any dtype.
// May be empty.
PLEXAURA_API Node slice(Operand x, SliceOptions options);

// The gradient of slice() by x: grad_out at the indices that `options` selects of an axis of size `extent`, and 0 at all
// others.
PLEXAURA_API Node slice_grad(Operand grad_out, std::int64_t extent, SliceOptions options);

// The indices that SliceOptions select, for an axis of known extent.
struct SliceIndices {
  std::int64_t axis = 0;  // counted from the front
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};

// Returns the indices for an axis of size `extent` in a value of this rank. A step that leaves the axis at once
// is shortened. Throws RuleError for a step of 0, and std::invalid_argument for an axis that does not exist.
PLEXAURA_API SliceIndices indices_of(const SliceOptions& options, std::int64_t rank, std::int64_t extent);

class PLEXAURA_API SliceOp final : public OpOf<SliceOp, SliceOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "slice"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::follows}; }
};

struct SliceGradOptions : SliceOptions {
  std::int64_t extent = 0;

  static void fields(auto& self, auto& visitor) {
    SliceOptions::fields(self, visitor);
    visitor("extent", self.extent);
  }
};

class PLEXAURA_API SliceGrad final : public OpOf<SliceGrad, SliceGradOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "slice_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

}  // namespace plexaura
