#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"
#include "core/ops/reduce.h"

namespace plexaura {

// Reductions that are composed of other ops. For axes and keepdims see ReduceOptions; a single axis may be written as a
// number. For 16-bit floats they are computed in float32 and rounded once.

// The product along axes; 1 if there are no elements. Any dtype but bool. A product of integers that the dtype cannot
// hold wraps around. The gradient is also correct if elements are 0.
PLEXAURA_API Node prod(Operand x, ReduceOptions options = {});
inline Node prod(Operand x, WrittenInteger auto axis) {
  return prod(x, {.axes = {static_cast<std::int64_t>(axis)}});
}

struct VarianceOptions {
  std::vector<std::int64_t> axes = {};  // negative ones count from the back; empty means all axes
  bool keepdims = false;                // reduced axes stay, with extent 1
  double correction = 1;                // subtracted from the number of elements in the divisor
};

// var is the sum of (x - mean)^2 divided by (n - correction), for n elements along axes. std_dev is its square root.
// Floating. n must be larger than the correction. The gradient of std_dev is 0 if all elements are equal.
PLEXAURA_API Node var(Operand x, VarianceOptions options = {});
PLEXAURA_API Node std_dev(Operand x, VarianceOptions options = {});
inline Node var(Operand x, WrittenInteger auto axis) {
  return var(x, {.axes = {static_cast<std::int64_t>(axis)}});
}
inline Node std_dev(Operand x, WrittenInteger auto axis) {
  return std_dev(x, {.axes = {static_cast<std::int64_t>(axis)}});
}

// log(sum of e^x) along axes, without overflow. If there are no elements, or if all are -infinity, it is -infinity and
// its gradient is 0. Floating.
PLEXAURA_API Node logsumexp(Operand x, ReduceOptions options = {});
inline Node logsumexp(Operand x, WrittenInteger auto axis) {
  return logsumexp(x, {.axes = {static_cast<std::int64_t>(axis)}});
}

struct NormOptions {
  double p = 2;
  std::vector<std::int64_t> axes = {};  // negative ones count from the back; empty means all axes
  bool keepdims = false;                // reduced axes stay, with extent 1
};

// (sum of |x|^p)^(1 / p) along axes. For p = 0 it is the number of elements that are not 0. For p = infinity it is the
// largest |x|, and for -infinity the smallest; then none of these axes may be empty. Floating. If the norm is 0, its
// gradient is 0; the gradient by an element that is 0 is 0, too. For p = 0 there is no gradient.
PLEXAURA_API Node norm(Operand x, NormOptions options = {});

// The index (int64) of the smallest element along one axis, whose extent must not be 0: the first of equal elements. If
// there is a NaN, it is the index of the first NaN. Any dtype but bool. No gradient.
PLEXAURA_API Node argmin(Operand x, std::int64_t axis, bool keepdims = false);

// any is true if at least one element along axes is true, and all if every element is. Operands may have any dtype;
// every value but zero is true, NaN too. Without elements any is false and all is true. The result is bool and has no
// gradient.
PLEXAURA_API Node any(Operand x, ReduceOptions options = {});
PLEXAURA_API Node all(Operand x, ReduceOptions options = {});
inline Node any(Operand x, WrittenInteger auto axis) {
  return any(x, {.axes = {static_cast<std::int64_t>(axis)}});
}
inline Node all(Operand x, WrittenInteger auto axis) {
  return all(x, {.axes = {static_cast<std::int64_t>(axis)}});
}

}  // namespace plexaura
