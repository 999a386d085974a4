#pragma once

#include <cstdint>

#include "backends/cpu/fast/winograd/winograd_loops.h"

// The loops of gradients of a convolution with windows of 3x3 and stride 1 whose tiles are those of the result: each of
// 4x4 pixels, computed in the convolution from 6x6 pixels of the source.

namespace plexaura::fast {

// Transforms the gradient of the result of some tiles. `to` points to the numbers of the first one. If `tile_sums` is
// not null, writes the sum of each tile's pixels to it: [tiles, channels with padding].
PLEXAURA_CLONED void transform_result_grad(const WinogradTiles& tiles, const PixelView& gradient,
                                           const float* grad_out, const TileRange& range, float* to,
                                           const PointPlaces& places, float* tile_sums);

// Transforms the products of the tiles of whole samples and one panel to gradients of the 6x6 pixels of the source that
// each tile reads, adds up those of neighbouring tiles, and writes the sums to `y`. The first tile reads from `above` rows
// and `before` columns outside of the source on. Writes zero to the padding of channels.
PLEXAURA_CLONED void write_source_grad(const WinogradTiles& tiles, const WinogradSource& source,
                                       const TileRange& range, std::int64_t panel, const float* products,
                                       std::int64_t step, float* y);

}  // namespace plexaura::fast
