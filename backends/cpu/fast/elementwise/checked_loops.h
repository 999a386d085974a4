#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "backends/cpu/fast/clones.h"
#include "core/ops/functors.h"

// Loops that look at their operands first, and choose formulas by them.

namespace plexaura::fast {

// Computes blocks of elements with SmallAngles. A block with an angle that is too large for it is computed with AnyAngles.
template <template <class, class> class Functor, class SmallAngles, class AnyAngles, class T>
PLEXAURA_INLINE void angle_loop(const T* x, T* y, std::int64_t count) {
  constexpr std::int64_t block = 64;
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t size = std::min(block, count - begin);
    std::int32_t small = 0;
#pragma omp simd reduction(+ : small)
    for (std::int64_t i = begin; i < begin + size; ++i)
      small += std::fabs(x[i]) < SmallAngles::largest_angle ? 1 : 0;
    if (small == size) {
      const Functor<T, SmallAngles> f(nullptr);
#pragma omp simd
      for (std::int64_t i = begin; i < begin + size; ++i) y[i] = f(x[i]);
    } else {
      const Functor<T, AnyAngles> f(nullptr);
      for (std::int64_t i = begin; i < begin + size; ++i) y[i] = f(x[i]);
    }
  }
}

template <class T, class Function>
PLEXAURA_INLINE void apply_to_all(const T* x, T* y, std::int64_t count, const Function& function) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = function(x[i]);
}

// Computes powers that need only one or two multiplications or a division. Their errors are at most one unit of the last
// place. Returns false for other exponents.
template <class T>
PLEXAURA_INLINE bool simple_powers(const T* x, T exponent, T* y, std::int64_t count) {
  if (exponent == T(0))
    apply_to_all(x, y, count, [](T) { return T(1); });
  else if (exponent == T(1))
    apply_to_all(x, y, count, [](T base) { return base; });
  else if (exponent == T(2))
    apply_to_all(x, y, count, [](T base) { return base * base; });
  else if (exponent == T(3))
    apply_to_all(x, y, count, [](T base) { return base * base * base; });
  else if (exponent == T(-1))
    apply_to_all(x, y, count, [](T base) { return T(1) / base; });
  else
    return false;
  return true;
}

}  // namespace plexaura::fast
