#include "backends/cpu/fast/softmax/softmax_loops.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/math/math_of.h"

namespace plexaura::fast {

namespace {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();
// e^x rounds to 0 for smaller x.
template <class T>
constexpr T smallest_exponent = std::is_same_v<T, double> ? T(-746) : T(-104);

// Returns e^x for x <= 0. If the exact value rounds to 0, no product underflows on the way, which would be slow. Masks
// of attention make many such elements.
template <class T>
PLEXAURA_INLINE T exponential(T x) {
  const bool vanishes = x < smallest_exponent<T>;
  const T e = MathOf<T>::exp(vanishes ? T(0) : x);
  return vanishes ? T(0) : e;
}

// A row is computed in vectors of this many elements. Its last elements are copied to a vector of their own, filled up
// with -infinity, whose exponential is 0.
constexpr std::int64_t lanes = 16;

template <class T>
struct RowEnd {
  T values[lanes];

  PLEXAURA_INLINE RowEnd(const T* x, std::int64_t count) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < lanes; ++lane) values[lane] = lane < count ? x[lane] : -infinity<T>;
  }
};

// Returns the largest element. Ignores NaNs: the exponentials turn them into NaNs of the sum.
template <class T>
PLEXAURA_INLINE T largest_in(const T* x, std::int64_t whole, const RowEnd<T>& end) {
  T largest[lanes];
#pragma omp simd
  for (std::int64_t lane = 0; lane < lanes; ++lane)
    largest[lane] = end.values[lane] > -infinity<T> ? end.values[lane] : -infinity<T>;
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

template <class T>
PLEXAURA_INLINE void add_exponentials(const T* x, T largest, double* totals, T* exponentials) {
#pragma omp simd
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const T e = exponential(x[lane] - largest);
    exponentials[lane] = e;
    totals[lane] += static_cast<double>(e);
  }
}

template <class T>
PLEXAURA_INLINE void softmax_row(const T* x, std::int64_t count, T* y) {
  const std::int64_t whole = count / lanes * lanes;
  RowEnd<T> end(x + whole, count - whole);
  const T largest = largest_in(x, whole, end);
  double totals[lanes] = {};
  for (std::int64_t i = 0; i < whole; i += lanes) add_exponentials(x + i, largest, totals, y + i);
  if (whole < count) add_exponentials(end.values, largest, totals, end.values);
  const auto factor = static_cast<T>(1 / sum_of(totals));
#pragma omp simd
  for (std::int64_t i = 0; i < whole; ++i) y[i] *= factor;
  for (std::int64_t i = whole; i < count; ++i) y[i] = end.values[i - whole] * factor;
}

template <class T>
PLEXAURA_INLINE void log_softmax_row(const T* x, std::int64_t count, T* y) {
  const std::int64_t whole = count / lanes * lanes;
  const RowEnd<T> end(x + whole, count - whole);
  const T largest = largest_in(x, whole, end);
  double totals[lanes] = {};
  T unused[lanes];
  for (std::int64_t i = 0; i < whole; i += lanes) add_exponentials(x + i, largest, totals, unused);
  if (whole < count) add_exponentials(end.values, largest, totals, unused);
  const auto log_total = static_cast<T>(std::log(sum_of(totals)));
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = (x[i] - largest) - log_total;
}

template <class T>
PLEXAURA_INLINE void largest_of_columns(const T* x, std::int64_t extent, std::int64_t stride,
                                        std::int64_t columns, T* largest) {
  for (std::int64_t column = 0; column < columns; ++column) largest[column] = -infinity<T>;
  for (std::int64_t i = 0; i < extent; ++i) {
    const T* row = x + i * stride;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column)
      largest[column] = row[column] > largest[column] ? row[column] : largest[column];
  }
}

template <class T>
PLEXAURA_INLINE void all_softmax_rows(const T* x, std::int64_t rows, std::int64_t extent, T* y) {
  for (std::int64_t row = 0; row < rows; ++row) softmax_row(x + row * extent, extent, y + row * extent);
}

template <class T>
PLEXAURA_INLINE void all_log_softmax_rows(const T* x, std::int64_t rows, std::int64_t extent, T* y) {
  for (std::int64_t row = 0; row < rows; ++row) log_softmax_row(x + row * extent, extent, y + row * extent);
}

template <class T>
PLEXAURA_INLINE void all_softmax_columns(const T* x, std::int64_t extent, std::int64_t stride,
                                         std::int64_t columns, T* y) {
  T largest[most_softmax_columns];
  double totals[most_softmax_columns] = {};
  T factors[most_softmax_columns];
  largest_of_columns(x, extent, stride, columns, largest);
  for (std::int64_t i = 0; i < extent; ++i) {
    const T* from = x + i * stride;
    T* to = y + i * stride;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column) {
      const T e = exponential(from[column] - largest[column]);
      to[column] = e;
      totals[column] += static_cast<double>(e);
    }
  }
  for (std::int64_t column = 0; column < columns; ++column)
    factors[column] = static_cast<T>(1 / totals[column]);
  for (std::int64_t i = 0; i < extent; ++i) {
    T* to = y + i * stride;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column) to[column] *= factors[column];
  }
}

template <class T>
PLEXAURA_INLINE void all_log_softmax_columns(const T* x, std::int64_t extent, std::int64_t stride,
                                             std::int64_t columns, T* y) {
  T largest[most_softmax_columns];
  double totals[most_softmax_columns] = {};
  T logarithms[most_softmax_columns];
  largest_of_columns(x, extent, stride, columns, largest);
  for (std::int64_t i = 0; i < extent; ++i) {
    const T* from = x + i * stride;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column)
      totals[column] += static_cast<double>(exponential(from[column] - largest[column]));
  }
  for (std::int64_t column = 0; column < columns; ++column)
    logarithms[column] = static_cast<T>(std::log(totals[column]));
  for (std::int64_t i = 0; i < extent; ++i) {
    const T* from = x + i * stride;
    T* to = y + i * stride;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column)
      to[column] = (from[column] - largest[column]) - logarithms[column];
  }
}

template <class T>
PLEXAURA_INLINE void all_softmax_grad_rows(const T* y, const T* grad, std::int64_t rows, std::int64_t extent,
                                           T* result) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * extent;
    double total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < extent; ++i) total += static_cast<double>(grad[first + i] * y[first + i]);
    const auto sum = static_cast<T>(total);
#pragma omp simd
    for (std::int64_t i = 0; i < extent; ++i) result[first + i] = y[first + i] * (grad[first + i] - sum);
  }
}

template <class T>
PLEXAURA_INLINE void all_log_softmax_grad_rows(const T* y, const T* grad, std::int64_t rows,
                                               std::int64_t extent, T* result) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * extent;
    double total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < extent; ++i) total += static_cast<double>(grad[first + i]);
    const auto sum = static_cast<T>(total);
#pragma omp simd
    for (std::int64_t i = 0; i < extent; ++i)
      result[first + i] = grad[first + i] - MathOf<T>::exp(y[first + i]) * sum;
  }
}

}  // namespace

#define PLEXAURA_SOFTMAX(T)                                                                                 \
  PLEXAURA_CLONES void softmax_rows(const T* x, std::int64_t rows, std::int64_t extent, T* y) {             \
    all_softmax_rows(x, rows, extent, y);                                                                   \
  }                                                                                                         \
  PLEXAURA_CLONES void log_softmax_rows(const T* x, std::int64_t rows, std::int64_t extent, T* y) {         \
    all_log_softmax_rows(x, rows, extent, y);                                                               \
  }                                                                                                         \
  PLEXAURA_CLONES void softmax_columns(const T* x, std::int64_t extent, std::int64_t stride,                \
                                       std::int64_t columns, T* y) {                                        \
    all_softmax_columns(x, extent, stride, columns, y);                                                     \
  }                                                                                                         \
  PLEXAURA_CLONES void log_softmax_columns(const T* x, std::int64_t extent, std::int64_t stride,            \
                                           std::int64_t columns, T* y) {                                    \
    all_log_softmax_columns(x, extent, stride, columns, y);                                                 \
  }                                                                                                         \
  PLEXAURA_CLONES void softmax_grad_rows(const T* y, const T* grad, std::int64_t rows, std::int64_t extent, \
                                         T* result) {                                                       \
    all_softmax_grad_rows(y, grad, rows, extent, result);                                                   \
  }                                                                                                         \
  PLEXAURA_CLONES void log_softmax_grad_rows(const T* y, const T* grad, std::int64_t rows,                  \
                                             std::int64_t extent, T* result) {                              \
    all_log_softmax_grad_rows(y, grad, rows, extent, result);                                               \
  }
PLEXAURA_SOFTMAX(float)
PLEXAURA_SOFTMAX(double)
#undef PLEXAURA_SOFTMAX

}  // namespace plexaura::fast
