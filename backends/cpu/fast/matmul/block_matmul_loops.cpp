#include "backends/cpu/fast/matmul/block_matmul_loops.h"

#include <algorithm>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/matmul/products.h"

namespace plexaura::fast {

namespace {

constexpr std::int64_t depth = block_depth;
constexpr std::int64_t together = 6;  // rows that multiply_panel() computes at a time
static_assert(most_block_rows % together == 0);

// A panel has as many columns as fit into 64 bytes.
template <class T>
constexpr std::int64_t lanes_of = 64 / sizeof(T);

// The number of panels that are packed together in large products, so that rows of b are read in longer pieces.
constexpr std::int64_t most_panels = 4;

// Copies `inner` rows of `count` columns of b. Lanes after the last column are 0.
template <class T>
PLEXAURA_INLINE void pack_panel(const BlockProduct& product, const T* b, std::int64_t inner,
                                std::int64_t count, T* panel) {
  constexpr std::int64_t lanes = lanes_of<T>;
  for (std::int64_t k = 0; k < inner; ++k)
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      panel[k * lanes + lane] =
          lane < count ? b[k * product.b_inner_step + lane * product.b_column_step] : T(0);
}

// Packs `columns` columns of b into panels, which are depth * lanes_of<T> elements apart.
template <class T>
PLEXAURA_INLINE void pack_panels(const BlockProduct& product, const T* b, std::int64_t inner,
                                 std::int64_t columns, T* panels) {
  constexpr std::int64_t lanes = lanes_of<T>;
  if (columns % lanes == 0 && product.b_column_step == 1) {
    for (std::int64_t k = 0; k < inner; ++k)
      for (std::int64_t column = 0; column < columns; column += lanes)
        std::copy_n(b + k * product.b_inner_step + column, lanes, panels + column * depth + k * lanes);
    return;
  }
  for (std::int64_t column = 0; column < columns; column += lanes)
    pack_panel(product, b + column * product.b_column_step, inner, std::min(lanes, columns - column),
               panels + column * depth);
}

// Copies `inner` columns of `rows` rows of a. Groups of rows are depth * together elements apart. In a group, the
// elements of a column follow each other.
template <class T>
PLEXAURA_INLINE void pack_rows(const BlockProduct& product, const T* a, std::int64_t rows, std::int64_t inner,
                               T* groups) {
  for (std::int64_t first = 0; first < rows; first += together, groups += together * depth) {
    const T* const from = a + first * product.a_row_step;
    const std::int64_t count = std::min(together, rows - first);
    for (std::int64_t k = 0; k < inner; ++k)
      for (std::int64_t row = 0; row < count; ++row)
        groups[k * together + row] = from[row * product.a_row_step + k * product.a_inner_step];
  }
}

// Multiplies the rows of a block of a, packed or not, by one panel.
template <class T>
PLEXAURA_INLINE void multiply_block_rows(PanelProduct<T> product, const T* packed, std::int64_t rows,
                                         bool adds) {
  constexpr std::int64_t lanes = lanes_of<T>;
  if (packed == nullptr) {
    multiply_panel<AddTo::terms, lanes>(product, rows, adds);
    return;
  }
  for (std::int64_t row = 0; row < rows; row += together, product.y += together * product.y_step) {
    product.a = {packed + row * depth, 1, together};
    multiply_panel<AddTo::terms, lanes>(product, std::min(together, rows - row), adds);
  }
}

template <class T>
PLEXAURA_INLINE void multiply(const BlockProduct& product, const ResultBlock& block, const T* a, const T* b,
                              T* y, T* rows) {
  constexpr std::int64_t lanes = lanes_of<T>;
  alignas(64) T panels[depth * most_panels * lanes];
  const bool is_packed = packs_rows(product, block.columns);
  const std::int64_t columns_together = is_packed ? most_panels * lanes : lanes;
  const std::int64_t end = block.column + block.columns;
  for (std::int64_t k = 0; k < product.inner; k += depth) {
    const std::int64_t inner = std::min(depth, product.inner - k);
    const T* const block_a = a + block.row * product.a_row_step + k * product.a_inner_step;
    if (is_packed) pack_rows(product, block_a, block.rows, inner, rows);
    for (std::int64_t column = block.column; column < end; column += lanes) {
      const std::int64_t packed = (column - block.column) % columns_together;
      if (packed == 0)
        pack_panels(product, b + k * product.b_inner_step + column * product.b_column_step, inner,
                    std::min(columns_together, end - column), panels);
      multiply_block_rows({.a = {block_a, product.a_row_step, product.a_inner_step},
                           .panel = panels + packed * depth,
                           .panel_step = lanes,
                           .inner = inner,
                           .y = y + block.row * product.columns + column,
                           .y_step = product.columns,
                           .columns = std::min(lanes, end - column)},
                          is_packed ? static_cast<const T*>(rows) : nullptr, block.rows, k > 0);
    }
  }
}

}  // namespace

PLEXAURA_CLONES void multiply_block(const BlockProduct& product, const ResultBlock& block, const float* a,
                                    const float* b, float* y, float* rows) {
  multiply(product, block, a, b, y, rows);
}

PLEXAURA_CLONES void multiply_block(const BlockProduct& product, const ResultBlock& block, const double* a,
                                    const double* b, double* y, double* rows) {
  multiply(product, block, a, b, y, rows);
}

}  // namespace plexaura::fast
