#pragma once

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

}  // namespace plexaura::fast
