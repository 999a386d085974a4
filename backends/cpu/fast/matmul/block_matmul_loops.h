#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

// The sizes of a product [rows, inner] x [inner, columns], and the steps between elements of its factors.
struct BlockProduct {
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t columns;
  std::int64_t a_row_step;
  std::int64_t a_inner_step;
  std::int64_t b_inner_step;
  std::int64_t b_column_step;
};

// The largest block of the result that one call computes. The terms of a that it reads at a time fit the second cache.
constexpr std::int64_t most_block_rows = 96;
constexpr std::int64_t most_block_columns = 256;
// Terms that are added up while the rows of y stay in registers.
constexpr std::int64_t block_depth = 256;

// A block of the result: the rows from `row`, the columns from `column`.
struct ResultBlock {
  std::int64_t row;
  std::int64_t rows;
  std::int64_t column;
  std::int64_t columns;
};

// True if a block of so many columns copies its rows of a first. That pays if many panels read the rows, and they are
// not already in a few pages of memory.
inline bool packs_rows(const BlockProduct& product, std::int64_t columns) {
  return columns > most_block_columns / 2 && (product.a_inner_step != 1 || product.inner > block_depth);
}

// Computes one block of y = a b on the calling thread. y is row-major. The order of the terms of an element does not
// depend on the blocks. `rows` is memory for most_block_rows * block_depth elements; it is not used if the block does not
// pack its rows.
PLEXAURA_CLONED void multiply_block(const BlockProduct& product, const ResultBlock& block, const float* a,
                                    const float* b, float* y, float* rows);
PLEXAURA_CLONED void multiply_block(const BlockProduct& product, const ResultBlock& block, const double* a,
                                    const double* b, double* y, double* rows);

}  // namespace plexaura::fast
