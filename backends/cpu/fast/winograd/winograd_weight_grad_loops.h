#pragma once

#include <cstdint>

#include "backends/cpu/fast/winograd/winograd_loops.h"

// The loops of the gradient of the weights of a convolution with windows of 3x3 and stride 1, computed as Winograd's
// F(3x3, 4x4). The gradient of the result is divided into tiles of 4x4 pixels, which meet the same 6x6 pixels of the
// source as in the convolution. Of each window 36 points are products of matrices: [channels of the source, tiles] x
// [tiles, channels of the result].

namespace plexaura::fast {

// The tiles that are added up in registers. Sums over so many are added up in turn, which keeps errors small.
constexpr std::int64_t tiles_of_sum = 128;

// A product over the tiles of a pass: some channels of the source, 16 channels of the result.
struct WeightGradProduct {
  std::int64_t tiles;
  std::int64_t channels;  // of the source
  PointPlaces source;
  PointPlaces gradient;

  std::int64_t point_step() const { return step_of_points(channels * winograd_panel); }
};

// Computes products[channels, 16] = sum over tiles of source[tile, channels] x gradient[tile, 16] for each of the 36
// points, or adds this to them.
PLEXAURA_CLONED void multiply_tiles(const WeightGradProduct& product, const float* source,
                                    const float* gradient, float* products, bool adds);

// Transforms the products of some channels of the source, which begin at channel `first`, and of one panel of channels
// of the result to windows, and writes these where they are in the weights.
PLEXAURA_CLONED void write_windows(const WindowOffsets& offsets, std::int64_t first, std::int64_t panel,
                                   const WeightGradProduct& product, const float* products, float* weights);

}  // namespace plexaura::fast
