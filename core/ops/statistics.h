#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"
#include "core/ops/reduce.h"

namespace plexaura {

// Reductions that are made of others. Axes and keepdims are those of ReduceOptions. Of 16-bit floats they are computed in
// float32 and rounded once.

// The product along axes; 1 where there is nothing to multiply. Numbers of any dtype but bool; one of integers that the
// dtype does not hold wraps around. Its gradient is right where elements are 0, too.
PLEXAURA_API Node prod(Operand x, ReduceOptions options = {});

struct VarianceOptions {
  std::vector<std::int64_t> axes = {};  // negative ones count from the back; empty means all axes
  bool keepdims = false;                // reduced axes stay, with extent 1
  double correction = 1;                // what the number of elements is lessened by
};

// The sum of (x - mean)^2 over (n - correction) for n elements along axes; the square root of that. Floating. n must be
// larger than the correction. The gradient of std_dev is 0 where all elements are equal.
PLEXAURA_API Node var(Operand x, VarianceOptions options = {});
PLEXAURA_API Node std_dev(Operand x, VarianceOptions options = {});

// log(sum of e^x) along axes, without overflow; -infinity where there is nothing to add, or nothing but -infinity, and
// its gradient is 0 there. Floating.
PLEXAURA_API Node logsumexp(Operand x, ReduceOptions options = {});

struct NormOptions {
  double p = 2;
  std::vector<std::int64_t> axes = {};  // negative ones count from the back; empty means all axes
  bool keepdims = false;                // reduced axes stay, with extent 1
};

// (sum of |x|^p)^(1 / p) along axes; for p = 0 how many elements are not 0, for infinity and -infinity the largest and the
// smallest |x|, for which axes must not be empty. Floating. Where the norm is 0 its gradient is 0, and so is that by an
// element that is 0. Of p = 0 there is no gradient.
PLEXAURA_API Node norm(Operand x, NormOptions options = {});

// The index, int64, of the smallest element along one axis, which must not be empty; the first of equal ones, and the first
// NaN before all. Numbers of any dtype but bool. No gradient.
PLEXAURA_API Node argmin(Operand x, std::int64_t axis, bool keepdims = false);

// Whether one element along axes is true, and whether all are: of any dtype, where anything but zero, a NaN too, is true.
// Of nothing, any is false and all is true. Bool; no gradient.
PLEXAURA_API Node any(Operand x, ReduceOptions options = {});
PLEXAURA_API Node all(Operand x, ReduceOptions options = {});

}  // namespace plexaura
