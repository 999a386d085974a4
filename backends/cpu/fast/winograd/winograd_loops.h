#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/pixel_view.h"

// The loops of a convolution with windows of 3x3 and stride 1, computed as Winograd's F(4x4, 3x3). The result is divided
// into tiles of 4x4 pixels; the last ones of a row or column may be partial. A tile reads 6x6 pixels of the source. Its
// 36 points are products of matrices: [tiles, channels of the source] x [channels of the source, channels of the result].

namespace plexaura::fast {

constexpr std::int64_t winograd_tile = 4;    // rows and columns of a tile of the result
constexpr std::int64_t winograd_panel = 16;  // channels of the result that are computed together
constexpr int points_of_tile = 36;           // numbers that a tile and a window are transformed to

// Returns the distance of two points of a matrix with this number of elements. Sixteen more elements spread the points
// over the sets of a cache.
constexpr std::int64_t step_of_points(std::int64_t elements) { return elements + 16; }

// The first row and column of a tile in its sample.
struct TilePlace {
  std::int64_t sample;
  std::int64_t row;
  std::int64_t column;
};

struct WinogradTiles {
  std::int64_t samples;
  std::int64_t down;
  std::int64_t across;

  std::int64_t count() const { return samples * down * across; }
  PLEXAURA_INLINE TilePlace place_of(std::int64_t tile) const {
    return {tile / (down * across), tile / across % down * winograd_tile, tile % across * winograd_tile};
  }
};

struct TileRange {
  std::int64_t begin;
  std::int64_t end;
};

// The source of the convolution. The first tile of a sample begins `above` rows and `before` columns outside of it.
struct WinogradSource {
  PixelView pixels;
  std::int64_t above;
  std::int64_t before;

  std::int64_t channels() const { return pixels.blocks * pixels.lanes; }
};

// The element of the weights for channel o of the result, channel c of the source and place (i, j) of the window is at
// the sum of these four offsets.
struct WindowOffsets {
  std::vector<std::int64_t> result;
  std::vector<std::int64_t> source;
  std::array<std::int64_t, 3> row;
  std::array<std::int64_t, 3> column;
};

// Transforms the windows of one panel of the result's channels: `to` is [36, channels + 1, 16]. `channels` is the number
// of source channels with padding; windows of padding are zero.
PLEXAURA_CLONED void transform_windows(const WindowOffsets& offsets, const float* weights, std::int64_t panel,
                                       std::int64_t channels, float* to);

// The distances, in elements, of the numbers that tiles are transformed to.
struct PointPlaces {
  std::int64_t point;  // from one of the 36 points to the next
  std::int64_t panel;  // from 16 channels to the next 16
  std::int64_t tile;
};

// Transforms the source of some tiles. `to` points to the numbers of the first one.
PLEXAURA_CLONED void transform_source(const WinogradTiles& tiles, const WinogradSource& source,
                                      const float* x, const TileRange& range, float* to,
                                      const PointPlaces& places);

struct WinogradProduct {
  std::int64_t tiles;
  std::int64_t channels;  // of the source
  std::int64_t source_step;
  std::int64_t product_step;
};

// Computes products[tile, 16] = source[tile, channels] x windows[channels, 16] for each of the 36 points. The order of
// the terms does not depend on the number of tiles.
PLEXAURA_CLONED void multiply_points(const WinogradProduct& product, const float* source,
                                     const float* windows, float* products);

// Transforms the products of some tiles and one panel back, adds the bias (may be null), and writes the result. Writes
// zero to the padding of channels.
PLEXAURA_CLONED void write_tiles(const WinogradTiles& tiles, const PixelView& pixels, const TileRange& range,
                                 std::int64_t panel, const float* products, std::int64_t step,
                                 const float* bias, float* y);

}  // namespace plexaura::fast
