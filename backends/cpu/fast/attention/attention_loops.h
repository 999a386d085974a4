#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/matmul/products.h"

// Loops over blocks of attention scores. All of them run on the calling thread.

namespace plexaura::fast {

// A panel holds this many columns of a matrix, row after row. A row of a panel has 64 bytes.
template <class T>
constexpr std::int64_t panel_lanes = 64 / static_cast<std::int64_t>(sizeof(T));

// A matrix [inner, columns] in panels. Lanes after the last column are 0.
template <class T>
struct PanelMatrix {
  const T* panels;
  std::int64_t panel_size;  // elements from a panel to the next one
  std::int64_t inner;
  std::int64_t columns;
};

// The result of a product. Its rows are `row_step` elements apart.
template <class T>
struct ProductRows {
  T* at;
  std::int64_t row_step;
  std::int64_t rows;
  bool adds = false;  // true: the product is added to the rows
  bool fills_lanes =
      false;  // true: the rows have room for the lanes after the last column, which are written too
};

// Puts a row-major matrix [rows, columns] into panels of its columns.
PLEXAURA_CLONED void pack_columns(const float* x, std::int64_t rows, std::int64_t columns, float* panels);
PLEXAURA_CLONED void pack_columns(const double* x, std::int64_t rows, std::int64_t columns, double* panels);

// Puts the transpose of a row-major matrix [rows, columns] into panels. So a panel holds rows of x.
PLEXAURA_CLONED void pack_transposed(const float* x, std::int64_t rows, std::int64_t columns, float* panels);
PLEXAURA_CLONED void pack_transposed(const double* x, std::int64_t rows, std::int64_t columns,
                                     double* panels);

// Computes y = a b or y += a b. The order of the terms of an element depends only on b.inner.
PLEXAURA_CLONED void multiply_panels(const RowsOfA<float>& a, const PanelMatrix<float>& b,
                                     const ProductRows<float>& y);
PLEXAURA_CLONED void multiply_panels(const RowsOfA<double>& a, const PanelMatrix<double>& b,
                                     const ProductRows<double>& y);

// Replaces x[i] by `other` where mask[i * step] is false.
PLEXAURA_CLONED void choose(const bool* mask, std::int64_t step, std::int64_t count, float other, float* x);
PLEXAURA_CLONED void choose(const bool* mask, std::int64_t step, std::int64_t count, double other, double* x);

// Adds mask[i * step] to x[i].
PLEXAURA_CLONED void add_mask(const float* mask, std::int64_t step, std::int64_t count, float* x);
PLEXAURA_CLONED void add_mask(const double* mask, std::int64_t step, std::int64_t count, double* x);

// Adds x to y.
PLEXAURA_CLONED void accumulate(const float* x, std::int64_t count, float* y);
PLEXAURA_CLONED void accumulate(const double* x, std::int64_t count, double* y);

// Returns the largest |x[i]|, and infinity if an element is infinite or NaN.
PLEXAURA_CLONED float largest_size(const float* x, std::int64_t count);
PLEXAURA_CLONED double largest_size(const double* x, std::int64_t count);

}  // namespace plexaura::fast
