#include "backends/cpu/fast/softmax/softmax_loops.h"

#include <cmath>
#include <limits>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/elementwise/vector_math.h"

namespace plexaura::fast {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Returns e^x for x <= 0. If the exact value rounds to 0, no product underflows on the way, which would be slow. Masks
// of attention make many such elements.
PLEXAURA_INLINE float exponential(float x) {
  const bool vanishes = x < -104.F;
  const float e = VectorMath::exp(vanishes ? 0.F : x);
  return vanishes ? 0.F : e;
}

// A row is computed in vectors of this many elements. Its last elements are copied to a vector of their own, filled up
// with -infinity, whose exponential is 0.
constexpr std::int64_t lanes = 16;

struct RowEnd {
  float values[lanes];

  PLEXAURA_INLINE RowEnd(const float* x, std::int64_t count) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < lanes; ++lane) values[lane] = lane < count ? x[lane] : -infinity;
  }
};

// Ignores NaNs: the exponentials turn them into NaNs of the sum.
PLEXAURA_INLINE float largest_in(const float* x, std::int64_t whole, const RowEnd& end) {
  float largest[lanes];
#pragma omp simd
  for (std::int64_t lane = 0; lane < lanes; ++lane)
    largest[lane] = end.values[lane] > -infinity ? end.values[lane] : -infinity;
  for (std::int64_t i = 0; i < whole; i += lanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      largest[lane] = x[i + lane] > largest[lane] ? x[i + lane] : largest[lane];
  }
  for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < half; ++lane)
      largest[lane] = largest[lane + half] > largest[lane] ? largest[lane + half] : largest[lane];
  }
  return largest[0];
}

PLEXAURA_INLINE double sum_of(double* totals) {
  for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < half; ++lane) totals[lane] += totals[lane + half];
  }
  return totals[0];
}

PLEXAURA_INLINE void add_exponentials(const float* x, float largest, double* totals, float* exponentials) {
#pragma omp simd
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const float e = exponential(x[lane] - largest);
    exponentials[lane] = e;
    totals[lane] += static_cast<double>(e);
  }
}

PLEXAURA_INLINE void softmax_row(const float* x, std::int64_t count, float* y) {
  const std::int64_t whole = count / lanes * lanes;
  RowEnd end(x + whole, count - whole);
  const float largest = largest_in(x, whole, end);
  double totals[lanes] = {};
  for (std::int64_t i = 0; i < whole; i += lanes) add_exponentials(x + i, largest, totals, y + i);
  if (whole < count) add_exponentials(end.values, largest, totals, end.values);
  const auto factor = static_cast<float>(1 / sum_of(totals));
#pragma omp simd
  for (std::int64_t i = 0; i < whole; ++i) y[i] *= factor;
  for (std::int64_t i = whole; i < count; ++i) y[i] = end.values[i - whole] * factor;
}

PLEXAURA_INLINE void log_softmax_row(const float* x, std::int64_t count, float* y) {
  const std::int64_t whole = count / lanes * lanes;
  const RowEnd end(x + whole, count - whole);
  const float largest = largest_in(x, whole, end);
  double totals[lanes] = {};
  float unused[lanes];
  for (std::int64_t i = 0; i < whole; i += lanes) add_exponentials(x + i, largest, totals, unused);
  if (whole < count) add_exponentials(end.values, largest, totals, unused);
  const auto log_total = static_cast<float>(std::log(sum_of(totals)));
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = (x[i] - largest) - log_total;
}

PLEXAURA_INLINE void largest_of_columns(const float* x, std::int64_t extent, std::int64_t stride,
                                        std::int64_t columns, float* largest) {
  for (std::int64_t column = 0; column < columns; ++column) largest[column] = -infinity;
  for (std::int64_t i = 0; i < extent; ++i) {
    const float* row = x + i * stride;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column)
      largest[column] = row[column] > largest[column] ? row[column] : largest[column];
  }
}

}  // namespace

PLEXAURA_CLONES void softmax_rows(const float* x, std::int64_t rows, std::int64_t extent, float* y) {
  for (std::int64_t row = 0; row < rows; ++row) softmax_row(x + row * extent, extent, y + row * extent);
}

PLEXAURA_CLONES void log_softmax_rows(const float* x, std::int64_t rows, std::int64_t extent, float* y) {
  for (std::int64_t row = 0; row < rows; ++row) log_softmax_row(x + row * extent, extent, y + row * extent);
}

PLEXAURA_CLONES void softmax_columns(const float* x, std::int64_t extent, std::int64_t stride,
                                     std::int64_t columns, float* y) {
  float largest[most_softmax_columns];
  double totals[most_softmax_columns] = {};
  float factors[most_softmax_columns];
  largest_of_columns(x, extent, stride, columns, largest);
  for (std::int64_t i = 0; i < extent; ++i) {
    const float* from = x + i * stride;
    float* to = y + i * stride;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column) {
      const float e = exponential(from[column] - largest[column]);
      to[column] = e;
      totals[column] += static_cast<double>(e);
    }
  }
  for (std::int64_t column = 0; column < columns; ++column)
    factors[column] = static_cast<float>(1 / totals[column]);
  for (std::int64_t i = 0; i < extent; ++i) {
    float* to = y + i * stride;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column) to[column] *= factors[column];
  }
}

PLEXAURA_CLONES void log_softmax_columns(const float* x, std::int64_t extent, std::int64_t stride,
                                         std::int64_t columns, float* y) {
  float largest[most_softmax_columns];
  double totals[most_softmax_columns] = {};
  float logarithms[most_softmax_columns];
  largest_of_columns(x, extent, stride, columns, largest);
  for (std::int64_t i = 0; i < extent; ++i) {
    const float* from = x + i * stride;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column)
      totals[column] += static_cast<double>(exponential(from[column] - largest[column]));
  }
  for (std::int64_t column = 0; column < columns; ++column)
    logarithms[column] = static_cast<float>(std::log(totals[column]));
  for (std::int64_t i = 0; i < extent; ++i) {
    const float* from = x + i * stride;
    float* to = y + i * stride;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column)
      to[column] = (from[column] - largest[column]) - logarithms[column];
  }
}

PLEXAURA_CLONES void softmax_grad_rows(const float* y, const float* grad, std::int64_t rows,
                                       std::int64_t extent, float* result) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * extent;
    double total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < extent; ++i) total += static_cast<double>(grad[first + i] * y[first + i]);
    const auto sum = static_cast<float>(total);
#pragma omp simd
    for (std::int64_t i = 0; i < extent; ++i) result[first + i] = y[first + i] * (grad[first + i] - sum);
  }
}

PLEXAURA_CLONES void log_softmax_grad_rows(const float* y, const float* grad, std::int64_t rows,
                                           std::int64_t extent, float* result) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * extent;
    double total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < extent; ++i) total += static_cast<double>(grad[first + i]);
    const auto sum = static_cast<float>(total);
#pragma omp simd
    for (std::int64_t i = 0; i < extent; ++i)
      result[first + i] = grad[first + i] - VectorMath::exp(y[first + i]) * sum;
  }
}

}  // namespace plexaura::fast
