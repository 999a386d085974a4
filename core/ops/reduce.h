#pragma once

#include <vector>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

struct ReduceOptions {
  std::vector<std::int64_t> axes = {};  // negative ones count from the back; empty means all axes
  bool keepdims = false;                // reduced axes stay, with extent 1

  static void fields(auto& self, auto& visitor) {
    visitor("axes", self.axes);
    visitor("keepdims", self.keepdims);
  }
};

// The sum over axes. Numbers of any dtype but bool; float32 and below are added up in a wider type. The result has x's
// dtype: a sum of integers that it does not hold wraps around, so cast() them to a wider dtype before.
PLEXAURA_API Node sum(Operand x, ReduceOptions options = {});
// The mean over axes; NaN where there is nothing to average. Floating only.
PLEXAURA_API Node mean(Operand x, ReduceOptions options = {});

// The largest and the smallest element along axes, which must not be empty. Numbers of any dtype but bool; a
// NaN is the result. The gradient is split evenly between equal elements.
PLEXAURA_API Node max(Operand x, ReduceOptions options = {});
PLEXAURA_API Node min(Operand x, ReduceOptions options = {});

// The index, int64, of the largest element along one axis; the first of equal ones, and the first NaN before
// all. No gradient.
PLEXAURA_API Node argmax(Operand x, std::int64_t axis, bool keepdims = false);

// x / count, divided in float32 where x has 16 bits and its dtype does not hold the count. Floating.
Node divide_by_count(Operand x, std::int64_t count);

// x summed down to a shape that broadcasts to x's: the adjoint of broadcasting. x itself where the shapes are
// equal.
PLEXAURA_API Node sum_to(Operand x, const Shape& shape);

// The class behind sum, mean, max and min. Axes are normalised, sorted, and never empty but for rank 0.
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

// One axis.
class PLEXAURA_API ArgMax final : public OpOf<ArgMax, ReduceOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "argmax"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest&) const override { return {Node()}; }
  void compute(const HostCall& call) const;
};

}  // namespace plexaura
