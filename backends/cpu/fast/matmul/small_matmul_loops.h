#pragma once

#include <cstdint>

namespace plexaura::fast {

// A product [rows, inner] x [inner, columns]. A transposed factor lies in memory as [inner, rows] or [columns, inner].
struct MatrixProduct {
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t columns;
  bool transpose_a;
  bool transpose_b;
};

// So many columns of the result are computed together, from a panel of b, [inner, panel_columns].
constexpr std::int64_t panel_columns = 16;

// y = a b, with `bias`, [columns], added to each row unless it is null. On the calling thread; `panel` has room for one.
// Sums over `inner` in order.
void multiply_small(const MatrixProduct& product, const float* a, const float* b, const float* bias,
                    float* panel, float* y);

}  // namespace plexaura::fast
