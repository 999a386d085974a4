#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"

// The transforms of Winograd's F(4x4, 3x3) along one axis: six source values and a window of three values make six
// products, and these make four results. They follow from Toom's and Cook's interpolation of a polynomial at the points
// 0, +-a, +-b and infinity. With a = 5/8 and b = 3/2 rounding errors are smaller than with 1 and 2.
//
// Each function computes the lanes of vectors. `step` is the distance of the vectors that it reads, `to_step` of those
// that it writes. The arrays must not overlap.

namespace plexaura::fast {

namespace winograd_points {
constexpr float a = 0.625F;
constexpr float b = 1.5F;
constexpr float a2 = a * a;
constexpr float b2 = b * b;
constexpr float a3 = a2 * a;
constexpr float b3 = b2 * b;
}  // namespace winograd_points

template <int lanes>
PLEXAURA_INLINE void transform_source_axis(const float (*from)[lanes], std::int64_t step, float (*to)[lanes],
                                           std::int64_t to_step) {
  using namespace winograd_points;
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) {
    const float x0 = from[0][lane];
    const float x1 = from[step][lane];
    const float x2 = from[2 * step][lane];
    const float x3 = from[3 * step][lane];
    const float x4 = from[4 * step][lane];
    const float x5 = from[5 * step][lane];
    const float even_at_a = x4 - b2 * x2;
    const float odd_at_a = a * (x3 - b2 * x1);
    const float even_at_b = x4 - a2 * x2;
    const float odd_at_b = b * (x3 - a2 * x1);
    to[0][lane] = a2 * b2 * x0 - (a2 + b2) * x2 + x4;
    to[to_step][lane] = even_at_a + odd_at_a;
    to[2 * to_step][lane] = even_at_a - odd_at_a;
    to[3 * to_step][lane] = even_at_b + odd_at_b;
    to[4 * to_step][lane] = even_at_b - odd_at_b;
    to[5 * to_step][lane] = a2 * b2 * x1 - (a2 + b2) * x3 + x5;
  }
}

template <int lanes>
PLEXAURA_INLINE void transform_window_axis(const float (*from)[lanes], std::int64_t step, float (*to)[lanes],
                                           std::int64_t to_step) {
  using namespace winograd_points;
  constexpr float of_0 = 1 / (a2 * b2);
  constexpr float of_a = 1 / (2 * a2 * (a2 - b2));
  constexpr float of_b = 1 / (2 * b2 * (b2 - a2));
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) {
    const float w0 = from[0][lane];
    const float w1 = from[step][lane];
    const float w2 = from[2 * step][lane];
    const float even_at_a = of_a * (w0 + a2 * w2);
    const float odd_at_a = of_a * a * w1;
    const float even_at_b = of_b * (w0 + b2 * w2);
    const float odd_at_b = of_b * b * w1;
    to[0][lane] = of_0 * w0;
    to[to_step][lane] = even_at_a + odd_at_a;
    to[2 * to_step][lane] = even_at_a - odd_at_a;
    to[3 * to_step][lane] = even_at_b + odd_at_b;
    to[4 * to_step][lane] = even_at_b - odd_at_b;
    to[5 * to_step][lane] = w2;
  }
}

template <int lanes>
PLEXAURA_INLINE void transform_result_axis(const float (*from)[lanes], std::int64_t step, float (*to)[lanes],
                                           std::int64_t to_step) {
  using namespace winograd_points;
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) {
    const float even_at_a = from[step][lane] + from[2 * step][lane];
    const float odd_at_a = from[step][lane] - from[2 * step][lane];
    const float even_at_b = from[3 * step][lane] + from[4 * step][lane];
    const float odd_at_b = from[3 * step][lane] - from[4 * step][lane];
    to[0][lane] = from[0][lane] + even_at_a + even_at_b;
    to[to_step][lane] = a * odd_at_a + b * odd_at_b;
    to[2 * to_step][lane] = a2 * even_at_a + b2 * even_at_b;
    to[3 * to_step][lane] = a3 * odd_at_a + b3 * odd_at_b + from[5 * step][lane];
  }
}

}  // namespace plexaura::fast
