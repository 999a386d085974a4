#include "backends/cpu/fast/convolution/tile_loops.h"

#include <algorithm>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/matmul/products.h"

namespace plexaura::fast {

namespace {

constexpr std::int64_t lanes = 8;  // columns that are computed together: 64 bytes

template <int rows>
PLEXAURA_INLINE void add_rows(const portable::TileFactors<double>& factors, std::int64_t row,
                              std::int64_t column, double* sum) {
  double sums[rows][lanes];
  for (std::int64_t i = 0; i < rows; ++i)
    std::copy_n(sum + (row + i) * portable::tile_columns + column, lanes, sums[i]);
  add_products(RowsOfA<double>{factors.a + row * portable::tile_depth, portable::tile_depth, 1},
               factors.b + column, factors.depth, sums, portable::tile_columns);
  for (std::int64_t i = 0; i < rows; ++i)
    std::copy_n(sums[i], lanes, sum + (row + i) * portable::tile_columns + column);
}

}  // namespace

// Six rows of two vectors of 32 bytes take twelve of sixteen registers.
PLEXAURA_CLONES void add_tile(const portable::TileFactors<double>& factors, double* sum) {
  for (std::int64_t column = 0; column < factors.columns; column += lanes) {
    std::int64_t row = 0;
    for (; row + 6 <= factors.rows; row += 6) add_rows<6>(factors, row, column, sum);
    for (; row + 4 <= factors.rows; row += 4) add_rows<4>(factors, row, column, sum);
    for (; row < factors.rows; ++row) add_rows<1>(factors, row, column, sum);
  }
}

}  // namespace plexaura::fast
