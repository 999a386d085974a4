#pragma once

#include <vector>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

struct ReduceOptions {
  std::vector<std::int64_t> axes = {};  // negative ones count from the end; empty means all axes
  bool keepdims = false;                // reduced axes remain, with extent 1

  static void fields(auto& self, auto& visitor) {
    visitor("axes", self.axes);
    visitor("keepdims", self.keepdims);
  }
};

// The sum over axes. Numbers of any dtype but bool. Floats of 32 and 16 bits are added up in a wider type. The result has
// x's dtype. A sum of integers that this dtype cannot hold wraps around; cast() x to a wider dtype to avoid that.
PLEXAURA_API Node sum(Operand x, ReduceOptions options = {});
// The mean over axes; NaN if there are no elements. Floating only.
PLEXAURA_API Node mean(Operand x, ReduceOptions options = {});

// sum() or mean() along one axis.
inline Node sum(Operand x, WrittenInteger auto axis) {
  return sum(x, {.axes = {static_cast<std::int64_t>(axis)}});
}
inline Node mean(Operand x, WrittenInteger auto axis) {
  return mean(x, {.axes = {static_cast<std::int64_t>(axis)}});
}

// The largest and the smallest element along axes, which must not be empty. Numbers of any dtype but bool. If
// there is a NaN, the result is NaN. Equal elements share the gradient evenly.
PLEXAURA_API Node max(Operand x, ReduceOptions options = {});
PLEXAURA_API Node min(Operand x, ReduceOptions options = {});

// max() or min() along one axis. For the larger one of two values see maximum().
inline Node max(Operand x, WrittenInteger auto axis) {
  return max(x, {.axes = {static_cast<std::int64_t>(axis)}});
}
inline Node min(Operand x, WrittenInteger auto axis) {
  return min(x, {.axes = {static_cast<std::int64_t>(axis)}});
}

// The index, int64, of the largest element along one axis. Of equal ones it is the first; if there are NaNs,
// it is the first NaN. No gradient.
PLEXAURA_API Node argmax(Operand x, std::int64_t axis, bool keepdims = false);

// x / count. Divides in float32 if x has 16 bits and its dtype cannot hold the count. Floating.
Node divide_by_count(Operand x, std::int64_t count);

// Sums x to a shape that broadcasts to x's shape: the gradient of broadcasting. Returns x itself if the
// shapes are equal.
PLEXAURA_API Node sum_to(Operand x, const Shape& shape);

// The op of sum, mean, max and min. Its axes are normalised and sorted, and empty only for rank 0.
class PLEXAURA_API Reduce final : public OpOf<Reduce, ReduceOptions> {
 public:
  enum class Kind { sum, mean, max, min };
  Reduce(Kind kind, ReduceOptions options) : OpOf(std::move(options)), kind_(kind) {}

  std::string_view name() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;

 private:
  Kind kind_;
};

// The op of argmax(). Its options have exactly one axis.
class PLEXAURA_API ArgMax final : public OpOf<ArgMax, ReduceOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "argmax"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest&) const override { return {Node()}; }
  void compute(const HostCall& call) const;
};

}  // namespace plexaura
