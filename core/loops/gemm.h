#pragma once

#include <algorithm>
#include <cstdint>

#include "core/loops/loops.h"

namespace plexaura::portable {

// One tile of a matrix product, which matmul and the convolutions use. It is allocated on the stack. It reads
// its operands through functions that load, convert and gather a piece at a time, and always adds terms up in
// the same order.
template <class Sum>
class GemmTile {
 public:
  static constexpr std::int64_t rows = 32;
  static constexpr std::int64_t columns = 32;

  // The parameters have the same meaning as those of gemm() below.
  template <class LoadA, class LoadB, class Store>
  void run(std::int64_t product, std::int64_t row, std::int64_t height, std::int64_t column,
           std::int64_t width, std::int64_t inner, const LoadA& load_a, const LoadB& load_b,
           const Store& store) {
    std::fill(&sum_[0][0], &sum_[0][0] + height * columns, Sum(0));
    for (std::int64_t k = 0; k < inner; k += depth) {
      const std::int64_t count = std::min(depth, inner - k);
      for (std::int64_t i = 0; i < count; ++i) {
        load_b(product, k + i, column, width, b_[i]);
        std::fill(b_[i] + width, b_[i] + columns, Sum(0));
      }
      for (std::int64_t i = 0; i < height; ++i) {
        load_a(product, row + i, k, count, a_);
        add_products(count, sum_[i]);
      }
    }
    for (std::int64_t i = 0; i < height; ++i) store(product, row + i, column, width, sum_[i]);
  }

 private:
  static constexpr std::int64_t depth = 64;

  // Adds `count` products to each element of a row of the tile, four at a time while four are left.
  void add_products(std::int64_t count, Sum* sum) const {
    std::int64_t k = 0;
    for (; k + 4 <= count; k += 4) {
      const Sum a0 = a_[k];
      const Sum a1 = a_[k + 1];
      const Sum a2 = a_[k + 2];
      const Sum a3 = a_[k + 3];
      for (std::int64_t j = 0; j < columns; ++j)
        sum[j] += (a0 * b_[k][j] + a1 * b_[k + 1][j]) + (a2 * b_[k + 2][j] + a3 * b_[k + 3][j]);
    }
    for (; k < count; ++k)
      for (std::int64_t j = 0; j < columns; ++j) sum[j] += a_[k] * b_[k][j];
  }

  alignas(64) Sum sum_[rows][columns];
  alignas(64) Sum b_[depth][columns];
  alignas(64) Sum a_[depth];
};

// Computes `products` independent matrix products of rows x inner by inner x columns.
//   load_a(product, row, k, count, dst): the elements (row, k), (row, k + 1), ... of the left operand
//   load_b(product, k, column, count, dst): the elements (k, column), (k, column + 1), ... of the right one
//   store(product, row, column, count, src): a piece of a row of the result
// The result does not depend on the number of threads.
template <class Sum, class LoadA, class LoadB, class Store>
void gemm(std::int64_t products, std::int64_t rows, std::int64_t columns, std::int64_t inner,
          const LoadA& load_a, const LoadB& load_b, const Store& store) {
  using Tile = GemmTile<Sum>;
  const std::int64_t down = (rows + Tile::rows - 1) / Tile::rows;
  const std::int64_t across = (columns + Tile::columns - 1) / Tile::columns;
  parallel_for(products * down * across, Tile::rows * Tile::columns * (inner + 1), [&](std::int64_t index) {
    Tile tile;
    const std::int64_t row = index / across % down * Tile::rows;
    const std::int64_t column = index % across * Tile::columns;
    tile.run(index / (down * across), row, std::min(Tile::rows, rows - row), column,
             std::min(Tile::columns, columns - column), inner, load_a, load_b, store);
  });
}

}  // namespace plexaura::portable
