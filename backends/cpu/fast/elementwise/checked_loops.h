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

// Computes blocks of elements with Quotients. A block in which this is not exact is computed with AnyQuotients. A step is 0
// for a single value, which is used for all elements, or 1 for an array.
template <template <class, class> class Functor, class Quotients, class AnyQuotients, int step_a, int step_b,
          class T>
PLEXAURA_INLINE void remainder_loop(const T* a, const T* b, T* y, std::int64_t count) {
  constexpr std::int64_t block = 64;
  T block_a[block];
  T block_b[block];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t size = std::min(block, count - begin);
    std::int32_t exact = 0;
#pragma omp simd reduction(+ : exact)
    for (std::int64_t i = 0; i < size; ++i) {
      block_a[i] = a[(begin + i) * step_a];
      block_b[i] = b[(begin + i) * step_b];
      exact += Quotients::has_exact_quotient(block_a[i], block_b[i]) ? 1 : 0;
    }
    if (exact == size) {
      const Functor<T, Quotients> f(nullptr);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) y[begin + i] = f(block_a[i], block_b[i]);
    } else {
      const Functor<T, AnyQuotients> f(nullptr);
      for (std::int64_t i = 0; i < size; ++i) y[begin + i] = f(block_a[i], block_b[i]);
    }
  }
}

template <class T, class Function>
PLEXAURA_INLINE void apply_to_all(const T* x, T* y, std::int64_t count, const Function& function) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = function(x[i]);
}

// Applies a function that is declared PLEXAURA_INLINE. The compiler inlines no lambda with such a large body, and would
// call it for each element, without the instructions of the calling clone.
template <auto function, class T>
PLEXAURA_INLINE void apply_large(const T* x, T* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = function(x[i]);
}

// Computes powers that need at most two multiplications or one division. Their errors are at most one unit of the last
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
