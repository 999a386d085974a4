#pragma once

#include <algorithm>
#include <cstdint>

#include "core/loops/loops.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace plexaura::portable {

// Returns the number of threads that parallel_for() may use. Static, because sources are compiled with OpenMP and without.
static inline std::int64_t most_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

// The largest extents of a tile of a product, and the number of terms of its elements that are loaded at a time.
constexpr std::int64_t tile_rows = 32;
constexpr std::int64_t tile_columns = 256;
constexpr std::int64_t tile_depth = 64;

// Columns that are computed together.
constexpr std::int64_t columns_together = 32;

// The number of elements from one row of a tile to the next. In float64 it is an odd number of lines of the cache, so
// that rows do not compete for the same lines.
constexpr std::int64_t tile_step = tile_columns + 8;

// The factors of a part of a tile. The rows of a are tile_depth elements apart, those of b are tile_step elements apart.
// `depth` is at most tile_depth. After the last column, b has columns of 0 up to a multiple of columns_together.
template <class Sum>
struct TileFactors {
  const Sum* a;
  const Sum* b;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t depth;
};

// Adds the product to `sum`, whose rows are tile_step elements apart. It may also add to the columns where b is 0.
template <class Sum>
using AddTile = void (*)(const TileFactors<Sum>& factors, Sum* sum);

// Adds four products at a time to each element of some columns of a row.
template <class Sum>
void add_to_row(const Sum* a, const Sum* b, std::int64_t depth, Sum* sum) {
  constexpr std::int64_t columns = columns_together;
  Sum total[columns];  // overlaps neither factor, so that the compiler may use vectors
  std::copy_n(sum, columns, total);
  std::int64_t k = 0;
  for (; k + 4 <= depth; k += 4, b += 4 * tile_step) {
    const Sum a0 = a[k];
    const Sum a1 = a[k + 1];
    const Sum a2 = a[k + 2];
    const Sum a3 = a[k + 3];
    for (std::int64_t j = 0; j < columns; ++j)
      total[j] +=
          (a0 * b[j] + a1 * b[tile_step + j]) + (a2 * b[2 * tile_step + j] + a3 * b[3 * tile_step + j]);
  }
  for (; k < depth; ++k, b += tile_step)
    for (std::int64_t j = 0; j < columns; ++j) total[j] += a[k] * b[j];
  std::copy_n(total, columns, sum);
}

template <class Sum>
void add_tile(const TileFactors<Sum>& factors, Sum* sum) {
  for (std::int64_t column = 0; column < factors.columns; column += columns_together)
    for (std::int64_t row = 0; row < factors.rows; ++row)
      add_to_row(factors.a + row * tile_depth, factors.b + column, factors.depth,
                 sum + row * tile_step + column);
}

// One tile of a matrix product, which matmul and the convolutions use. It takes 219 KB of the stack in float64. It reads
// its operands through functions that load, convert and gather a piece at a time, and always adds terms up in
// the same order.
template <class Sum>
class GemmTile {
 public:
  // The parameters have the same meaning as those of gemm() below.
  template <class LoadA, class LoadB, class Store>
  void run(std::int64_t product, std::int64_t row, std::int64_t height, std::int64_t column,
           std::int64_t width, std::int64_t inner, const LoadA& load_a, const LoadB& load_b,
           const Store& store, AddTile<Sum> add) {
    const std::int64_t columns = (width + columns_together - 1) / columns_together * columns_together;
    for (std::int64_t i = 0; i < height; ++i) std::fill_n(sum_[i], columns, Sum(0));
    for (std::int64_t k = 0; k < inner; k += tile_depth) {
      const std::int64_t count = std::min(tile_depth, inner - k);
      for (std::int64_t i = 0; i < count; ++i) {
        load_b(product, k + i, column, width, b_[i]);
        std::fill(b_[i] + width, b_[i] + columns, Sum(0));
      }
      for (std::int64_t i = 0; i < height; ++i) load_a(product, row + i, k, count, a_[i]);
      add({a_[0], b_[0], height, width, count}, sum_[0]);
    }
    for (std::int64_t i = 0; i < height; ++i) store(product, row + i, column, width, sum_[i]);
  }

 private:
  alignas(64) Sum sum_[tile_rows][tile_step];
  alignas(64) Sum b_[tile_depth][tile_step];
  alignas(64) Sum a_[tile_rows][tile_depth];
};

// Returns the columns of a tile of a product with `rows` rows of tiles. Operands are gathered once for each tile, so
// wide ones are faster; few tiles are narrower, so that all threads have some.
inline std::int64_t columns_of_tile(std::int64_t rows, std::int64_t columns, std::int64_t threads) {
  const std::int64_t many_tiles = 8 * threads;
  for (std::int64_t width = tile_columns; width > columns_together; width /= 2)
    if (rows * (columns / width) >= many_tiles) return width;
  return columns_together;
}

// Computes `products` independent matrix products of rows x inner by inner x columns.
//   load_a(product, row, k, count, dst): the elements (row, k), (row, k + 1), ... of the left operand
//   load_b(product, k, column, count, dst): the elements (k, column), (k, column + 1), ... of the right one
//   store(product, row, column, count, src): a piece of a row of the result
//   add: adds the product of the loaded factors of a tile
// The result does not depend on the number of threads.
template <class Sum, class LoadA, class LoadB, class Store>
void gemm(std::int64_t products, std::int64_t rows, std::int64_t columns, std::int64_t inner,
          const LoadA& load_a, const LoadB& load_b, const Store& store, AddTile<Sum> add = add_tile<Sum>) {
  const std::int64_t down = (rows + tile_rows - 1) / tile_rows;
  const std::int64_t most_columns = columns_of_tile(products * down, columns, most_threads());
  const std::int64_t across = (columns + most_columns - 1) / most_columns;
  parallel_for(products * down * across, tile_rows * most_columns * (inner + 1), [&](std::int64_t index) {
    GemmTile<Sum> tile;
    const std::int64_t row = index / across % down * tile_rows;
    const std::int64_t column = index % across * most_columns;
    tile.run(index / (down * across), row, std::min(tile_rows, rows - row), column,
             std::min(most_columns, columns - column), inner, load_a, load_b, store, add);
  });
}

}  // namespace plexaura::portable
