#pragma once

#include <cmath>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/math/double_math.h"
#include "core/ops/functors.h"

namespace plexaura {

namespace fast {

// The remainder of float64 by one division, for operands for which has_exact_quotient() is true.
struct DoubleQuotients : DoubleMath {
  static PLEXAURA_INLINE bool has_exact_quotient(double a, double b) {
    return std::fabs(a) < 0x1p50 * std::fabs(b) && std::fabs(b) < HUGE_VAL;
  }

  // The whole number that is nearest to the quotient may be one too large. Then the rest has the wrong sign. The rest and
  // the remainder are differences of multiples of the last place of b, so neither is rounded.
  static PLEXAURA_INLINE double fmod(double a, double b) {
    constexpr double round = 0x1.8p52;  // adding it rounds to an integer
    const double whole = (a / b + round) - round;
    const double rest = std::fma(-whole, b, a);
    const double size = std::copysign(1., a) < 0. ? -rest : rest;
    return std::copysign(size < 0. ? size + std::fabs(b) : size, a);
  }
};

}  // namespace fast

// With DoubleQuotients no divisor is 0.
template <>
struct functors::FloorDiv<double, fast::DoubleQuotients> {
  PLEXAURA_INLINE explicit FloorDiv(const double*) {}
  PLEXAURA_INLINE double operator()(double a, double b) const {
    return floor_of_quotient<double, fast::DoubleQuotients>(a, b, fast::DoubleQuotients::fmod(a, b));
  }
};

}  // namespace plexaura
