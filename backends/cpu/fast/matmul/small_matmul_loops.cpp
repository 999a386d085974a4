#include "backends/cpu/fast/matmul/small_matmul_loops.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/matmul/products.h"

namespace plexaura::fast {

namespace {

constexpr std::int64_t lanes = panel_columns;
constexpr float zeros[lanes] = {};

// Copies `count` floats, at most `lanes`. It copies blocks of the sizes of powers of two, since a vectorised
// loop would not pay off for so few.
PLEXAURA_INLINE void copy_lanes(const float* from, std::int64_t count, float* to) {
  if (count == lanes) {
    std::copy_n(from, lanes, to);
    return;
  }
  const auto copy_next = [&](auto part) {
    if ((count & part) == 0) return;
    std::copy_n(from, part(), to);
    from += part;
    to += part;
  };
  copy_next(std::integral_constant<int, 8>());
  copy_next(std::integral_constant<int, 4>());
  copy_next(std::integral_constant<int, 2>());
  copy_next(std::integral_constant<int, 1>());
}

PLEXAURA_INLINE void pack_panel(const float* b, std::int64_t inner, std::int64_t step, std::int64_t count,
                                float* panel) {
  for (std::int64_t k = 0; k < inner; ++k) copy_lanes(b + k * step, count, panel + k * lanes);
}

// Lanes after the last column repeat that column.
PLEXAURA_INLINE void pack_transposed_panel(const float* b, std::int64_t inner, std::int64_t count,
                                           float* panel) {
  std::int32_t columns[lanes];
  for (std::int64_t lane = 0; lane < lanes; ++lane)
    columns[lane] = static_cast<std::int32_t>(std::min(lane, count - 1) * inner);
  for (std::int64_t k = 0; k < inner; ++k)
#pragma omp simd
    for (std::int64_t lane = 0; lane < lanes; ++lane) panel[k * lanes + lane] = b[columns[lane] + k];
}

template <int rows>
PLEXAURA_INLINE void multiply_rows(const RowsOfA<float>& a, const float* panel, std::int64_t inner,
                                   const float* first, float* y, std::int64_t columns, std::int64_t count) {
  float sums[rows][lanes];
  for (auto& sum : sums)
    for (std::int64_t lane = 0; lane < lanes; ++lane) sum[lane] = first[lane];
  add_products(a, panel, inner, sums);
  for (int row = 0; row < rows; ++row) copy_lanes(sums[row], count, y + row * columns);
}

PLEXAURA_INLINE void multiply_panel(const MatrixProduct& product, RowsOfA<float> a, const float* panel,
                                    const float* first, float* y, std::int64_t count) {
  std::int64_t row = 0;
  const auto advance = [&](std::int64_t rows) {
    row += rows;
    a.at += rows * a.row_step;
    y += rows * product.columns;
  };
  for (; row + 4 <= product.rows; advance(4))
    multiply_rows<4>(a, panel, product.inner, first, y, product.columns, count);
  for (; row < product.rows; advance(1))
    multiply_rows<1>(a, panel, product.inner, first, y, product.columns, count);
}

}  // namespace

PLEXAURA_CLONES void multiply_small(const MatrixProduct& product, const float* a, const float* b,
                                    const float* bias, float* panel, float* y) {
  const RowsOfA<float> rows{a, product.transpose_a ? 1 : product.inner,
                            product.transpose_a ? product.rows : 1};
  float part_of_bias[lanes] = {};
  for (std::int64_t column = 0; column < product.columns; column += lanes) {
    const std::int64_t count = std::min(lanes, product.columns - column);
    if (product.transpose_b)
      pack_transposed_panel(b + column * product.inner, product.inner, count, panel);
    else
      pack_panel(b + column, product.inner, product.columns, count, panel);
    if (bias != nullptr) copy_lanes(bias + column, count, part_of_bias);
    multiply_panel(product, rows, panel, bias != nullptr ? part_of_bias : zeros, y + column, count);
  }
}

}  // namespace plexaura::fast
