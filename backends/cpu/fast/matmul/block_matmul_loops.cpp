#include "backends/cpu/fast/matmul/block_matmul_loops.h"

#include <algorithm>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/matmul/products.h"

namespace plexaura::fast {

namespace {

constexpr std::int64_t depth = 256;  // terms that are added up while the rows of y stay in registers

// A panel has as many columns as fit into 64 bytes.
template <class T>
constexpr int lanes_of = 64 / sizeof(T);

// Copies `inner` rows of `count` columns of b. Lanes after the last column are 0.
template <class T>
PLEXAURA_INLINE void pack_panel(const BlockProduct& product, const T* b, std::int64_t inner,
                                std::int64_t count, T* panel) {
  constexpr std::int64_t lanes = lanes_of<T>;
  if (count == lanes && product.b_column_step == 1) {
    for (std::int64_t k = 0; k < inner; ++k)
      std::copy_n(b + k * product.b_inner_step, lanes, panel + k * lanes);
    return;
  }
  for (std::int64_t k = 0; k < inner; ++k)
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      panel[k * lanes + lane] =
          lane < count ? b[k * product.b_inner_step + lane * product.b_column_step] : T(0);
}

template <class T>
PLEXAURA_INLINE void multiply(const BlockProduct& product, const ResultBlock& block, const T* a, const T* b,
                              T* y) {
  constexpr std::int64_t lanes = lanes_of<T>;
  alignas(64) T panel[depth * lanes];
  const std::int64_t end = block.column + block.columns;
  for (std::int64_t k = 0; k < product.inner; k += depth) {
    const std::int64_t inner = std::min(depth, product.inner - k);
    for (std::int64_t column = block.column; column < end; column += lanes) {
      const std::int64_t count = std::min(lanes, end - column);
      pack_panel(product, b + k * product.b_inner_step + column * product.b_column_step, inner, count, panel);
      multiply_panel<AddTo::terms, lanes, T>(
          {.a = {a + block.row * product.a_row_step + k * product.a_inner_step, product.a_row_step,
                 product.a_inner_step},
           .panel = panel,
           .panel_step = lanes,
           .inner = inner,
           .y = y + block.row * product.columns + column,
           .y_step = product.columns,
           .columns = count},
          block.rows, k > 0);
    }
  }
}

}  // namespace

PLEXAURA_CLONES void multiply_block(const BlockProduct& product, const ResultBlock& block, const float* a,
                                    const float* b, float* y) {
  multiply(product, block, a, b, y);
}

PLEXAURA_CLONES void multiply_block(const BlockProduct& product, const ResultBlock& block, const double* a,
                                    const double* b, double* y) {
  multiply(product, block, a, b, y);
}

}  // namespace plexaura::fast
