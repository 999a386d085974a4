#include "backends/cpu/fast/winograd/winograd_loops.h"

#include <algorithm>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/matmul/products.h"
#include "backends/cpu/fast/winograd/winograd_transforms.h"

namespace plexaura::fast {

namespace {

constexpr int points = 36;
constexpr int panel_lanes = static_cast<int>(winograd_panel);
// The terms that are added up in registers. Sums of so many terms are added up in turn, which keeps errors small.
constexpr std::int64_t depth = 128;

// The first row and column of a tile in its sample.
struct TilePlace {
  std::int64_t sample;
  std::int64_t row;
  std::int64_t column;
};

PLEXAURA_INLINE TilePlace place_of(const WinogradTiles& tiles, std::int64_t tile) {
  return {tile / (tiles.down * tiles.across), tile / tiles.across % tiles.down * winograd_tile,
          tile % tiles.across * winograd_tile};
}

// Reads the 6x6 pixels that begin at `place`. Pixels outside of the image are zero.
template <int lanes>
PLEXAURA_INLINE void read_pixels(const PixelView& pixels, const float* x, const TilePlace& place,
                                 std::int64_t block, float (&to)[points][lanes]) {
  const bool is_inside = place.row >= 0 && place.column >= 0 && place.row + 6 <= pixels.height &&
                         place.column + 6 <= pixels.width;
  const float* const first = x + pixels.ChannelView::offset(place.sample, block);
  for (std::int64_t i = 0; i < 6; ++i)
    for (std::int64_t j = 0; j < 6; ++j) {
      const std::int64_t row = place.row + i;
      const std::int64_t column = place.column + j;
      float* const at = to[i * 6 + j];
      if (is_inside || (row >= 0 && column >= 0 && row < pixels.height && column < pixels.width))
        std::copy_n(first + (row * pixels.width + column) * pixels.row_stride, lanes, at);
      else
        std::fill_n(at, lanes, 0.F);
    }
}

template <int lanes>
PLEXAURA_INLINE void transform_tiles(const WinogradTiles& tiles, const WinogradSource& source, const float* x,
                                     const TileRange& range, float* to, std::int64_t step) {
  for (std::int64_t tile = range.begin; tile < range.end; ++tile, to += source.channels()) {
    TilePlace place = place_of(tiles, tile);
    place.row -= source.above;
    place.column -= source.before;
    for (std::int64_t block = 0; block < source.pixels.blocks; ++block) {
      alignas(64) float pixels[points][lanes];
      alignas(64) float columns[points][lanes];
      read_pixels(source.pixels, x, place, block, pixels);
      for (int j = 0; j < 6; ++j) transform_source_axis<lanes>(pixels + j, 6, columns + j, 6);
      for (int i = 0; i < 6; ++i) transform_source_axis<lanes>(columns + 6 * i, 1, pixels + 6 * i, 1);
      for (int point = 0; point < points; ++point)
        std::copy_n(pixels[point], lanes, to + point * step + block * lanes);
    }
  }
}

PLEXAURA_INLINE void multiply_point(const WinogradProduct& product, const float* source, const float* windows,
                                    float* products) {
  for (std::int64_t k = 0; k < product.channels; k += depth) {
    const std::int64_t inner = std::min(depth, product.channels - k);
    multiply_panel<AddTo::sums, panel_lanes, float>({.a = {source + k, product.channels, 1},
                                                     .panel = windows + k * panel_lanes,
                                                     .panel_step = panel_lanes,
                                                     .inner = inner,
                                                     .y = products,
                                                     .y_step = panel_lanes,
                                                     .columns = panel_lanes},
                                                    product.tiles, k > 0);
  }
}

// Writes the pixels of a tile that lie in the image.
template <int lanes>
PLEXAURA_INLINE void write_pixels(const PixelView& pixels, const TilePlace& place, std::int64_t block,
                                  const float (*values)[lanes], float* y) {
  const std::int64_t rows = std::min(winograd_tile, pixels.height - place.row);
  const std::int64_t columns = std::min(winograd_tile, pixels.width - place.column);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      std::copy_n(values[i * winograd_tile + j], lanes,
                  y + pixels.offset(place.sample, block, place.row + i, place.column + j));
}

template <int lanes>
PLEXAURA_INLINE void write_block(const WinogradTiles& tiles, const PixelView& pixels, const TileRange& range,
                                 std::int64_t block, const float* products, std::int64_t step,
                                 const float* bias, float* y) {
  const std::int64_t channels = pixels.lanes_of(block);
  float addend[lanes] = {};
  if (bias != nullptr) std::copy_n(bias + block * lanes, channels, addend);
  for (std::int64_t tile = range.begin; tile < range.end; ++tile, products += winograd_panel) {
    alignas(64) float of_points[points][lanes];
    alignas(64) float rows[4 * 6][lanes];
    alignas(64) float values[4 * 4][lanes];
    for (int point = 0; point < points; ++point)
      std::copy_n(products + point * step, lanes, of_points[point]);
    for (int j = 0; j < 6; ++j) transform_result_axis<lanes>(of_points + j, 6, rows + j, 6);
    for (int i = 0; i < 4; ++i) transform_result_axis<lanes>(rows + 6 * i, 1, values + 4 * i, 1);
    for (auto& value : values) {
#pragma omp simd
      for (int lane = 0; lane < lanes; ++lane) value[lane] += addend[lane];
      std::fill(value + channels, value + lanes, 0.F);
    }
    write_pixels<lanes>(pixels, place_of(tiles, tile), block, values, y);
  }
}

}  // namespace

PLEXAURA_CLONES void transform_windows(const WindowOffsets& offsets, const float* weights, std::int64_t panel,
                                       std::int64_t channels, float* to) {
  const std::int64_t first = panel * winograd_panel;
  const std::int64_t lanes = std::min(winograd_panel, std::ssize(offsets.result) - first);
  const std::int64_t step = step_of_points(channels * winograd_panel);
  for (std::int64_t channel = 0; channel < channels; ++channel, to += winograd_panel) {
    alignas(64) float window[9][panel_lanes] = {};
    alignas(64) float rows[6 * 3][panel_lanes];
    alignas(64) float of_points[points][panel_lanes];
    if (channel < std::ssize(offsets.source))
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const float* const at = weights + offsets.result[static_cast<std::size_t>(first + lane)] +
                                offsets.source[static_cast<std::size_t>(channel)];
        for (std::size_t place = 0; place < 9; ++place)
          window[place][lane] = at[offsets.row[place / 3] + offsets.column[place % 3]];
      }
    for (int j = 0; j < 3; ++j) transform_window_axis<panel_lanes>(window + j, 3, rows + j, 3);
    for (int i = 0; i < 6; ++i) transform_window_axis<panel_lanes>(rows + 3 * i, 1, of_points + 6 * i, 1);
    for (int point = 0; point < points; ++point)
      std::copy_n(of_points[point], panel_lanes, to + point * step);
  }
}

PLEXAURA_CLONES void transform_source(const WinogradTiles& tiles, const WinogradSource& source,
                                      const float* x, const TileRange& range, float* to, std::int64_t step) {
  if (source.pixels.lanes == 8)
    transform_tiles<8>(tiles, source, x, range, to, step);
  else
    transform_tiles<16>(tiles, source, x, range, to, step);
}

PLEXAURA_CLONES void multiply_points(const WinogradProduct& product, const float* source,
                                     const float* windows, float* products) {
  for (int point = 0; point < points; ++point)
    multiply_point(product, source + point * product.source_step,
                   windows + point * step_of_points(product.channels * winograd_panel),
                   products + point * product.product_step);
}

PLEXAURA_CLONES void write_tiles(const WinogradTiles& tiles, const PixelView& pixels, const TileRange& range,
                                 std::int64_t panel, const float* products, std::int64_t step,
                                 const float* bias, float* y) {
  const std::int64_t lanes = pixels.lanes;
  const std::int64_t end = std::min((panel + 1) * winograd_panel, pixels.blocks * lanes);
  for (std::int64_t channel = panel * winograd_panel; channel < end; channel += lanes) {
    const float* const at = products + channel % winograd_panel;
    if (lanes == 8)
      write_block<8>(tiles, pixels, range, channel / lanes, at, step, bias, y);
    else
      write_block<16>(tiles, pixels, range, channel / lanes, at, step, bias, y);
  }
}

}  // namespace plexaura::fast
