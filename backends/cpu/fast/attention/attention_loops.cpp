#include "backends/cpu/fast/attention/attention_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plexaura::fast {

namespace {

constexpr std::int64_t depth = 256;  // terms that are added up while the rows of y stay in registers

// Puts the columns of a matrix [rows, columns] into panels. Its elements are `row_step` and `column_step` apart.
template <class T>
PLEXAURA_INLINE void pack(const T* x, std::int64_t rows, std::int64_t row_step, std::int64_t columns,
                          std::int64_t column_step, T* panels) {
  constexpr std::int64_t lanes = panel_lanes<T>;
  for (std::int64_t column = 0; column < columns; column += lanes) {
    const std::int64_t count = std::min(lanes, columns - column);
    for (std::int64_t row = 0; row < rows; ++row, panels += lanes) {
      const T* from = x + row * row_step + column * column_step;
      if (count == lanes) {
        for (std::int64_t lane = 0; lane < lanes; ++lane) panels[lane] = from[lane * column_step];
      } else {
        for (std::int64_t lane = 0; lane < lanes; ++lane)
          panels[lane] = lane < count ? from[lane * column_step] : T(0);
      }
    }
  }
}

template <class T>
PLEXAURA_INLINE void multiply_all(const RowsOfA<T>& a, const PanelMatrix<T>& b, const ProductRows<T>& y) {
  constexpr int lanes = panel_lanes<T>;
  for (std::int64_t k = 0; k < b.inner; k += depth) {
    const std::int64_t inner = std::min(depth, b.inner - k);
    for (std::int64_t column = 0; column < b.columns; column += lanes)
      multiply_panel<AddTo::sums, lanes, T>(
          {.a = {a.at + k * a.inner_step, a.row_step, a.inner_step},
           .panel = b.panels + column / lanes * b.panel_size + k * lanes,
           .panel_step = lanes,
           .inner = inner,
           .y = y.at + column,
           .y_step = y.row_step,
           .columns = y.fills_lanes ? lanes : std::min<std::int64_t>(lanes, b.columns - column)},
          y.rows, y.adds || k > 0);
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
    pack(x, rows, columns, columns, 1, panels);                                                          \
  }                                                                                                      \
  PLEXAURA_CLONES void pack_transposed(const T* x, std::int64_t rows, std::int64_t columns, T* panels) { \
    pack(x, columns, 1, rows, columns, panels);                                                          \
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
