#include "backends/cpu/fast/convolution/tile_loops.h"

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/matmul/products.h"

namespace plexaura::fast {

namespace {

constexpr int lanes = 8;  // columns that are computed together: 64 bytes

}  // namespace

PLEXAURA_CLONES void add_tile(const portable::TileFactors<double>& factors, double* sum) {
  for (std::int64_t column = 0; column < factors.columns; column += lanes)
    multiply_panel<AddTo::terms, lanes, double>({.a = {factors.a, portable::tile_depth, 1},
                                                 .panel = factors.b + column,
                                                 .panel_step = portable::tile_step,
                                                 .inner = factors.depth,
                                                 .y = sum + column,
                                                 .y_step = portable::tile_step,
                                                 .columns = lanes},
                                                factors.rows, true);
}

}  // namespace plexaura::fast
