#include "backends/cpu/fast/winograd/winograd_gradient_loops.h"

#include <algorithm>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/winograd/winograd_pixels.h"
#include "backends/cpu/fast/winograd/winograd_transforms.h"

namespace plexaura::fast {

namespace {

template <int lanes, class Pixels>
PLEXAURA_INLINE void sum_pixels(const Pixels& pixels, float* to) {
  std::fill_n(to, lanes, 0.F);
  for (std::int64_t j = 0; j < 4; ++j) {
    const float* const x0 = pixels(j)[0];
    const float* const x1 = pixels(j)[1];
    const float* const x2 = pixels(j)[2];
    const float* const x3 = pixels(j)[3];
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) to[lane] += (x0[lane] + x1[lane]) + (x2[lane] + x3[lane]);
  }
}

template <int lanes>
PLEXAURA_INLINE void transform_grad_tiles(const WinogradTiles& tiles, const PixelView& gradient,
                                          const float* grad_out, const TileRange& range, float* to,
                                          const PointPlaces& places, float* tile_sums) {
  for (std::int64_t tile = range.begin; tile < range.end; ++tile, to += places.tile) {
    const TilePlace place = tiles.place_of(tile);
    for (std::int64_t block = 0; block < gradient.blocks; ++block) {
      alignas(64) float columns[6 * 4 * lanes];
      with_pixels<4>(
          gradient, grad_out, place, block, [&](const auto& pixels) __attribute__((always_inline)) {
            for (std::int64_t j = 0; j < 4; ++j)
              transform_result_grad_axis<lanes>(pixels(j), Vectors<float>{columns + j * lanes, 4 * lanes});
            if (tile_sums != nullptr)
              sum_pixels<lanes>(pixels, tile_sums + ((tile - range.begin) * gradient.blocks + block) * lanes);
          });
      float* const first = first_point(to, block * lanes, places);
      for (std::int64_t i = 0; i < 6; ++i)
        transform_result_grad_axis<lanes>(Vectors<const float>{columns + 4 * i * lanes, lanes},
                                          Vectors<float>{first + 6 * i * places.point, places.point});
    }
  }
}

// Adds the 6x6 pixels of a tile, which begins at `place`, to those of them that lie in the image.
template <int lanes>
PLEXAURA_INLINE void add_pixels(const PixelView& pixels, const TilePlace& place, std::int64_t block,
                                const float* values, float* y) {
  const std::int64_t channels = pixels.lanes_of(block);
  const std::int64_t rows = std::min<std::int64_t>(6, pixels.height - place.row);
  const std::int64_t columns = std::min<std::int64_t>(6, pixels.width - place.column);
  for (std::int64_t i = std::max<std::int64_t>(0, -place.row); i < rows; ++i)
    for (std::int64_t j = std::max<std::int64_t>(0, -place.column); j < columns; ++j) {
      const float* const value = values + (i * 6 + j) * lanes;
      float* const to = y + pixels.offset(place.sample, block, place.row + i, place.column + j);
#pragma omp simd
      for (int lane = 0; lane < lanes; ++lane) to[lane] += value[lane];
      if (channels < lanes) std::fill(to + channels, to + lanes, 0.F);
    }
}

template <int lanes>
PLEXAURA_INLINE void clear_block(const PixelView& pixels, std::int64_t sample, std::int64_t block, float* y) {
  float* const first = y + pixels.ChannelView::offset(sample, block);
  for (std::int64_t pixel = 0; pixel < pixels.rows; ++pixel)
    std::fill_n(first + pixel * pixels.row_stride, lanes, 0.F);
}

template <int lanes>
PLEXAURA_INLINE void write_source_grad_block(const WinogradTiles& tiles, const WinogradSource& source,
                                             const TileRange& range, std::int64_t block,
                                             const float* products, std::int64_t step, float* y) {
  for (std::int64_t tile = range.begin; tile < range.end; ++tile, products += winograd_panel) {
    alignas(64) float rows[6 * 6 * lanes];
    alignas(64) float values[6 * 6 * lanes];
    for (std::int64_t j = 0; j < 6; ++j)
      transform_source_grad_axis<lanes>(Vectors<const float>{products + j * step, 6 * step},
                                        Vectors<float>{rows + j * lanes, 6 * lanes});
    for (std::int64_t i = 0; i < 6; ++i)
      transform_source_grad_axis<lanes>(Vectors<const float>{rows + 6 * i * lanes, lanes},
                                        Vectors<float>{values + 6 * i * lanes, lanes});
    TilePlace place = tiles.place_of(tile);
    if (place.row == 0 && place.column == 0) clear_block<lanes>(source.pixels, place.sample, block, y);
    place.row -= source.above;
    place.column -= source.before;
    add_pixels<lanes>(source.pixels, place, block, values, y);
  }
}

}  // namespace

PLEXAURA_CLONES void transform_result_grad(const WinogradTiles& tiles, const PixelView& gradient,
                                           const float* grad_out, const TileRange& range, float* to,
                                           const PointPlaces& places, float* tile_sums) {
  if (gradient.lanes == 8)
    transform_grad_tiles<8>(tiles, gradient, grad_out, range, to, places, tile_sums);
  else
    transform_grad_tiles<16>(tiles, gradient, grad_out, range, to, places, tile_sums);
}

PLEXAURA_CLONES void write_source_grad(const WinogradTiles& tiles, const WinogradSource& source,
                                       const TileRange& range, std::int64_t panel, const float* products,
                                       std::int64_t step, float* y) {
  const std::int64_t lanes = source.pixels.lanes;
  const std::int64_t end = std::min((panel + 1) * winograd_panel, source.channels());
  for (std::int64_t channel = panel * winograd_panel; channel < end; channel += lanes) {
    const float* const at = products + channel % winograd_panel;
    if (lanes == 8)
      write_source_grad_block<8>(tiles, source, range, channel / lanes, at, step, y);
    else
      write_source_grad_block<16>(tiles, source, range, channel / lanes, at, step, y);
  }
}

}  // namespace plexaura::fast
