#include "backends/cpu/fast/attention/attention_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plexaura::fast {

namespace {

constexpr std::int64_t depth = 256;  // terms that are added up while the rows of y stay in registers

template <class T>
PLEXAURA_INLINE void pack_all_columns(const T* x, std::int64_t rows, std::int64_t columns, T* panels) {
  constexpr std::int64_t lanes = panel_lanes<T>;
  for (std::int64_t column = 0; column < columns; column += lanes) {
    const std::int64_t count = std::min(lanes, columns - column);
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* from = x + row * columns + column;
      if (count == lanes) {
        for (std::int64_t lane = 0; lane < lanes; ++lane) panels[lane] = from[lane];
      } else {
        for (std::int64_t lane = 0; lane < lanes; ++lane) panels[lane] = lane < count ? from[lane] : T(0);
      }
      panels += lanes;
    }
  }
}

template <class T>
PLEXAURA_INLINE void pack_all_transposed(const T* x, std::int64_t rows, std::int64_t columns, T* panels) {
  constexpr std::int64_t lanes = panel_lanes<T>;
  for (std::int64_t row = 0; row < rows; row += lanes) {
    const std::int64_t count = std::min(lanes, rows - row);
    for (std::int64_t column = 0; column < columns; ++column) {
      const T* from = x + row * columns + column;
      if (count == lanes) {
        for (std::int64_t lane = 0; lane < lanes; ++lane) panels[lane] = from[lane * columns];
      } else {
        for (std::int64_t lane = 0; lane < lanes; ++lane)
          panels[lane] = lane < count ? from[lane * columns] : T(0);
      }
      panels += lanes;
    }
  }
}

// Computes `rows` rows of a panel of the result, which has `count` columns.
template <class T, int rows>
PLEXAURA_INLINE void multiply_tile(const RowsOfA<T>& a, const T* panel, std::int64_t inner,
                                   std::int64_t count, bool adds, T* y, std::int64_t row_step) {
  constexpr int lanes = panel_lanes<T>;
  T sums[rows][lanes];
  for (int row = 0; row < rows; ++row)
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) sums[row][lane] = 0;  // "= {}" would call memset
  add_products(a, panel, inner, sums);
  for (int row = 0; row < rows; ++row, y += row_step) {
    if (count < lanes) {
      for (std::int64_t lane = 0; lane < count; ++lane) y[lane] = sums[row][lane] + (adds ? y[lane] : T(0));
    } else if (adds) {
#pragma omp simd
      for (int lane = 0; lane < lanes; ++lane) y[lane] += sums[row][lane];
    } else {
#pragma omp simd
      for (int lane = 0; lane < lanes; ++lane) y[lane] = sums[row][lane];
    }
  }
}

// Six rows of two vectors of 32 bytes take twelve of sixteen registers.
template <class T>
PLEXAURA_INLINE void multiply_one_panel(RowsOfA<T> a, const T* panel, std::int64_t inner, std::int64_t count,
                                        bool adds, T* y, std::int64_t row_step, std::int64_t rows) {
  const auto skip = [&](std::int64_t done) {
    a.at += done * a.row_step;
    y += done * row_step;
    rows -= done;
  };
  for (; rows >= 6; skip(6)) multiply_tile<T, 6>(a, panel, inner, count, adds, y, row_step);
  for (; rows >= 4; skip(4)) multiply_tile<T, 4>(a, panel, inner, count, adds, y, row_step);
  for (; rows >= 2; skip(2)) multiply_tile<T, 2>(a, panel, inner, count, adds, y, row_step);
  if (rows > 0) multiply_tile<T, 1>(a, panel, inner, count, adds, y, row_step);
}

template <class T>
PLEXAURA_INLINE void multiply_all(const RowsOfA<T>& a, const PanelMatrix<T>& b, const ProductRows<T>& y) {
  constexpr std::int64_t lanes = panel_lanes<T>;
  for (std::int64_t k = 0; k < b.inner; k += depth) {
    const RowsOfA<T> from{a.at + k * a.inner_step, a.row_step, a.inner_step};
    const std::int64_t inner = std::min(depth, b.inner - k);
    for (std::int64_t column = 0; column < b.columns; column += lanes)
      multiply_one_panel(from, b.panels + column / lanes * b.panel_size + k * lanes, inner,
                         y.fills_lanes ? lanes : std::min(lanes, b.columns - column), y.adds || k > 0,
                         y.at + column, y.row_step, y.rows);
  }
}

template <class T>
PLEXAURA_INLINE void choose_all(const bool* mask, std::int64_t step, std::int64_t count, T other, T* x) {
  if (step == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) x[i] = mask[i] ? x[i] : other;
  } else if (!*mask) {
    std::fill_n(x, count, other);
  }
}

template <class T>
PLEXAURA_INLINE void add_all(const T* mask, std::int64_t step, std::int64_t count, T* x) {
  if (step == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) x[i] += mask[i];
  } else {
    const T addend = *mask;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) x[i] += addend;
  }
}

// x * 0 is NaN if x is infinite or NaN. The sum of such products is NaN, too.
template <class T>
PLEXAURA_INLINE T size_of_largest(const T* x, std::int64_t count) {
  T sum = 0;
  T largest = 0;
#pragma omp simd reduction(+ : sum) reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) {
    sum += x[i] * T(0);
    const T size = std::fabs(x[i]);
    largest = size > largest ? size : largest;
  }
  return sum == T(0) ? largest : std::numeric_limits<T>::infinity();
}

}  // namespace

#define PLEXAURA_ATTENTION(T)                                                                            \
  PLEXAURA_CLONES void pack_columns(const T* x, std::int64_t rows, std::int64_t columns, T* panels) {    \
    pack_all_columns(x, rows, columns, panels);                                                          \
  }                                                                                                      \
  PLEXAURA_CLONES void pack_transposed(const T* x, std::int64_t rows, std::int64_t columns, T* panels) { \
    pack_all_transposed(x, rows, columns, panels);                                                       \
  }                                                                                                      \
  PLEXAURA_CLONES void multiply_panels(const RowsOfA<T>& a, const PanelMatrix<T>& b,                     \
                                       const ProductRows<T>& y) {                                        \
    multiply_all(a, b, y);                                                                               \
  }                                                                                                      \
  PLEXAURA_CLONES void choose(const bool* mask, std::int64_t step, std::int64_t count, T other, T* x) {  \
    choose_all(mask, step, count, other, x);                                                             \
  }                                                                                                      \
  PLEXAURA_CLONES void add_mask(const T* mask, std::int64_t step, std::int64_t count, T* x) {            \
    add_all(mask, step, count, x);                                                                       \
  }                                                                                                      \
  PLEXAURA_CLONES void accumulate(const T* x, std::int64_t count, T* y) { add_all(x, 1, count, y); }     \
  PLEXAURA_CLONES T largest_size(const T* x, std::int64_t count) { return size_of_largest(x, count); }
PLEXAURA_ATTENTION(float)
PLEXAURA_ATTENTION(double)
#undef PLEXAURA_ATTENTION

}  // namespace plexaura::fast
