#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"

// The transforms of Winograd's F(4x4, 3x3) along one axis: six source values and a window of three values make six
// products, and these make four results. For the gradient of the window, six source values and the gradient of four
// results make six products, and these make three values: F(3x3, 4x4), with the transposed transforms. The gradient of the
// source has such a form too. The transforms follow from Toom's and Cook's interpolation of a polynomial at the points 0,
// +-a, +-b and infinity. With a = 5/8 and b = 3/2 rounding errors are smaller than with 1 and 2.
//
// Each function computes the lanes of vectors. `from` and `to` give the address of a vector by its number. What they give
// must not overlap.

namespace plexaura::fast {

// Vectors that are `step` elements apart.
template <class T>
struct Vectors {
  T* at;
  std::int64_t step;

  PLEXAURA_INLINE T* operator[](std::int64_t number) const { return at + number * step; }
};

// Vectors whose addresses are listed: every `step`-th one of the list.
struct ListedVectors {
  const float* const* at;
  std::int64_t step;

  PLEXAURA_INLINE const float* operator[](std::int64_t number) const { return at[number * step]; }
};

namespace winograd_points {
constexpr float a = 0.625F;
constexpr float b = 1.5F;
constexpr float a2 = a * a;
constexpr float b2 = b * b;
constexpr float a3 = a2 * a;
constexpr float b3 = b2 * b;
constexpr float of_0 = 1 / (a2 * b2);
constexpr float of_a = 1 / (2 * a2 * (a2 - b2));
constexpr float of_b = 1 / (2 * b2 * (b2 - a2));
}  // namespace winograd_points

template <int lanes, class From, class To>
PLEXAURA_INLINE void transform_source_axis(const From& from, const To& to) {
  using namespace winograd_points;
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) {
    const float x0 = from[0][lane];
    const float x1 = from[1][lane];
    const float x2 = from[2][lane];
    const float x3 = from[3][lane];
    const float x4 = from[4][lane];
    const float x5 = from[5][lane];
    const float even_at_a = x4 - b2 * x2;
    const float odd_at_a = a * (x3 - b2 * x1);
    const float even_at_b = x4 - a2 * x2;
    const float odd_at_b = b * (x3 - a2 * x1);
    to[0][lane] = a2 * b2 * x0 - (a2 + b2) * x2 + x4;
    to[1][lane] = even_at_a + odd_at_a;
    to[2][lane] = even_at_a - odd_at_a;
    to[3][lane] = even_at_b + odd_at_b;
    to[4][lane] = even_at_b - odd_at_b;
    to[5][lane] = a2 * b2 * x1 - (a2 + b2) * x3 + x5;
  }
}

template <int lanes, class From, class To>
PLEXAURA_INLINE void transform_window_axis(const From& from, const To& to) {
  using namespace winograd_points;
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) {
    const float w0 = from[0][lane];
    const float w1 = from[1][lane];
    const float w2 = from[2][lane];
    const float even_at_a = of_a * (w0 + a2 * w2);
    const float odd_at_a = of_a * a * w1;
    const float even_at_b = of_b * (w0 + b2 * w2);
    const float odd_at_b = of_b * b * w1;
    to[0][lane] = of_0 * w0;
    to[1][lane] = even_at_a + odd_at_a;
    to[2][lane] = even_at_a - odd_at_a;
    to[3][lane] = even_at_b + odd_at_b;
    to[4][lane] = even_at_b - odd_at_b;
    to[5][lane] = w2;
  }
}

template <int lanes, class From, class To>
PLEXAURA_INLINE void transform_result_axis(const From& from, const To& to) {
  using namespace winograd_points;
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) {
    const float even_at_a = from[1][lane] + from[2][lane];
    const float odd_at_a = from[1][lane] - from[2][lane];
    const float even_at_b = from[3][lane] + from[4][lane];
    const float odd_at_b = from[3][lane] - from[4][lane];
    to[0][lane] = from[0][lane] + even_at_a + even_at_b;
    to[1][lane] = a * odd_at_a + b * odd_at_b;
    to[2][lane] = a2 * even_at_a + b2 * even_at_b;
    to[3][lane] = a3 * odd_at_a + b3 * odd_at_b + from[5][lane];
  }
}

// Makes the gradient of six source values from that of their six products: the transposed transform_source_axis().
template <int lanes, class From, class To>
PLEXAURA_INLINE void transform_source_grad_axis(const From& from, const To& to) {
  using namespace winograd_points;
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) {
    const float m0 = from[0][lane];
    const float m5 = from[5][lane];
    const float even_at_a = from[1][lane] + from[2][lane];
    const float odd_at_a = a * (from[1][lane] - from[2][lane]);
    const float even_at_b = from[3][lane] + from[4][lane];
    const float odd_at_b = b * (from[3][lane] - from[4][lane]);
    to[0][lane] = a2 * b2 * m0;
    to[1][lane] = a2 * b2 * m5 - b2 * odd_at_a - a2 * odd_at_b;
    to[2][lane] = -(a2 + b2) * m0 - b2 * even_at_a - a2 * even_at_b;
    to[3][lane] = odd_at_a + odd_at_b - (a2 + b2) * m5;
    to[4][lane] = m0 + even_at_a + even_at_b;
    to[5][lane] = m5;
  }
}

// Transforms the gradient of four results: the transposed transform_result_axis().
template <int lanes, class From, class To>
PLEXAURA_INLINE void transform_result_grad_axis(const From& from, const To& to) {
  using namespace winograd_points;
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) {
    const float g0 = from[0][lane];
    const float g1 = from[1][lane];
    const float g2 = from[2][lane];
    const float g3 = from[3][lane];
    const float even_at_a = g0 + a2 * g2;
    const float odd_at_a = a * g1 + a3 * g3;
    const float even_at_b = g0 + b2 * g2;
    const float odd_at_b = b * g1 + b3 * g3;
    to[0][lane] = g0;
    to[1][lane] = even_at_a + odd_at_a;
    to[2][lane] = even_at_a - odd_at_a;
    to[3][lane] = even_at_b + odd_at_b;
    to[4][lane] = even_at_b - odd_at_b;
    to[5][lane] = g3;
  }
}

// Makes the gradient of a window from six products: the transposed transform_window_axis().
template <int lanes, class From, class To>
PLEXAURA_INLINE void transform_window_grad_axis(const From& from, const To& to) {
  using namespace winograd_points;
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) {
    const float even_at_a = of_a * (from[1][lane] + from[2][lane]);
    const float odd_at_a = of_a * a * (from[1][lane] - from[2][lane]);
    const float even_at_b = of_b * (from[3][lane] + from[4][lane]);
    const float odd_at_b = of_b * b * (from[3][lane] - from[4][lane]);
    to[0][lane] = of_0 * from[0][lane] + even_at_a + even_at_b;
    to[1][lane] = odd_at_a + odd_at_b;
    to[2][lane] = a2 * even_at_a + b2 * even_at_b + from[5][lane];
  }
}

}  // namespace plexaura::fast
