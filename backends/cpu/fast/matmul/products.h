#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

// Rows of a factor, whose elements are `inner_step` apart; rows are `row_step` apart.
template <class T>
struct RowsOfA {
  const T* at;
  std::int64_t row_step;
  std::int64_t inner_step;
};

// Adds the product of some rows of a, [rows, inner], and a panel of b, [inner, lanes], to `sums`. The rows of the panel
// are `panel_step` elements apart. Terms are added up in the order of `inner`.
template <class T, int rows, int lanes>
PLEXAURA_INLINE void add_products(const RowsOfA<T>& a, const T* panel, std::int64_t inner,
                                  T (&sums)[rows][lanes], std::int64_t panel_step = lanes) {
  for (std::int64_t k = 0; k < inner; ++k)
#pragma GCC unroll 6
    for (int row = 0; row < rows; ++row) {
      const T factor = a.at[row * a.row_step + k * a.inner_step];
#pragma omp simd
      for (int lane = 0; lane < lanes; ++lane) sums[row][lane] += factor * panel[k * panel_step + lane];
    }
}

// The factors of a product and its result y. Of the lanes of the panel, y has the first `columns`.
template <class T>
struct PanelProduct {
  RowsOfA<T> a;
  const T* panel;
  std::int64_t panel_step;
  std::int64_t inner;
  T* y;
  std::int64_t y_step;  // from one row to the next
  std::int64_t columns;

  PLEXAURA_INLINE void skip(std::int64_t rows) {
    a.at += rows * a.row_step;
    y += rows * y_step;
  }
};

// Says whether the terms are added to y one by one, or y is added to their sum. Sums of sums have smaller errors.
enum class AddTo { terms, sums };

// Writes sums to y, or adds them.
template <int rows, int lanes, class T>
PLEXAURA_INLINE void write_sums(const T (&sums)[rows][lanes], const PanelProduct<T>& product,
                                std::int64_t columns, bool adds) {
  for (int row = 0; row < rows; ++row) {
    T* const y = product.y + row * product.y_step;
    if (adds) {
#pragma omp simd
      for (std::int64_t lane = 0; lane < columns; ++lane) y[lane] = sums[row][lane] + y[lane];
    } else {
      std::copy_n(sums[row], columns, y);
    }
  }
}

// Computes some rows. With `adds`, the product is added to y.
template <AddTo to, int lanes, int rows, class T>
PLEXAURA_INLINE void multiply_rows(const PanelProduct<T>& product, bool adds) {
  T sums[rows][lanes];
  for (int row = 0; row < rows; ++row)
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) sums[row][lane] = 0;  // "= {}" would call memset
  if (adds && to == AddTo::terms)
    for (int row = 0; row < rows; ++row)
      std::copy_n(product.y + row * product.y_step, product.columns, sums[row]);
  add_products(product.a, product.panel, product.inner, sums, product.panel_step);
  const bool adds_sums = adds && to == AddTo::sums;
  if (product.columns == lanes)  // a constant for the compiler
    write_sums(sums, product, lanes, adds_sums);
  else
    write_sums(sums, product, product.columns, adds_sums);
}

// Computes `together` rows at a time while so many are left. Returns the number of rows that are left.
template <AddTo to, int lanes, int together, class T>
PLEXAURA_INLINE std::int64_t multiply_groups(PanelProduct<T>& product, std::int64_t rows, bool adds) {
  for (; rows >= together; rows -= together) {
    multiply_rows<to, lanes, together>(product, adds);
    product.skip(together);
  }
  return rows;
}

// Computes all rows. Six rows of two vectors of 32 bytes take twelve of sixteen registers.
template <AddTo to, int lanes, class T>
PLEXAURA_INLINE void multiply_panel(PanelProduct<T> product, std::int64_t rows, bool adds) {
  rows = multiply_groups<to, lanes, 6>(product, rows, adds);
  rows = multiply_groups<to, lanes, 4>(product, rows, adds);
  rows = multiply_groups<to, lanes, 2>(product, rows, adds);
  multiply_groups<to, lanes, 1>(product, rows, adds);
}

}  // namespace plexaura::fast
