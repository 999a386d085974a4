#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

// The sizes of a product [rows, inner] x [inner, columns]. A transposed factor is stored as [inner, rows] or
// [columns, inner].
struct MatrixProduct {
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t columns;
  bool transpose_a;
  bool transpose_b;
};

// Larger products are faster with threads and with blocks for each cache.
constexpr std::int64_t most_small_multiplications = std::int64_t{64} * 64 * 64;

// The number of columns of the result that are computed together, from a panel of b: [inner, panel_columns].
constexpr std::int64_t panel_columns = 16;

// Computes y = a b on the calling thread, and adds `bias`, [columns], to each row unless it is null. `panel`
// is workspace for one panel. Terms are added up in the order of `inner`.
PLEXAURA_CLONED void multiply_small(const MatrixProduct& product, const float* a, const float* b,
                                    const float* bias, float* panel, float* y);

}  // namespace plexaura::fast
