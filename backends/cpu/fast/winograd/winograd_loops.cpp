#include "backends/cpu/fast/winograd/winograd_loops.h"

#include <algorithm>
#include <span>
#include <vector>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/matmul/products.h"
#include "backends/cpu/fast/winograd/winograd_pixels.h"
#include "backends/cpu/fast/winograd/winograd_transforms.h"

namespace plexaura::fast {

namespace {

constexpr int panel_lanes = static_cast<int>(winograd_panel);
// The terms that are added up in registers. Sums of so many terms are added up in turn, which keeps errors small.
constexpr std::int64_t depth = 128;

template <int lanes>
PLEXAURA_INLINE void transform_tiles(const WinogradTiles& tiles, const WinogradSource& source, const float* x,
                                     const TileRange& range, float* to, const PointPlaces& places) {
  for (std::int64_t tile = range.begin; tile < range.end; ++tile, to += places.tile) {
    TilePlace place = tiles.place_of(tile);
    place.row -= source.above;
    place.column -= source.before;
    for (std::int64_t block = 0; block < source.pixels.blocks; ++block) {
      alignas(64) float columns[points_of_tile * lanes];
      with_pixels<6>(
          source.pixels, x, place, block, [&](const auto& pixels) __attribute__((always_inline)) {
            for (std::int64_t j = 0; j < 6; ++j)
              transform_source_axis<lanes>(pixels(j), Vectors<float>{columns + j * lanes, 6 * lanes});
          });
      float* const first = first_point(to, block * lanes, places);
      for (std::int64_t i = 0; i < 6; ++i)
        transform_source_axis<lanes>(Vectors<const float>{columns + 6 * i * lanes, lanes},
                                     Vectors<float>{first + 6 * i * places.point, places.point});
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

// Adds the bias to the pixels of a tile and writes those that lie in the image. Lanes behind the channels become zero.
template <int lanes>
PLEXAURA_INLINE void write_pixels(const PixelView& pixels, const TilePlace& place, std::int64_t block,
                                  const float* values, const float (&bias)[lanes], float* y) {
  const std::int64_t rows = std::min(winograd_tile, pixels.height - place.row);
  const std::int64_t columns = std::min(winograd_tile, pixels.width - place.column);
  const std::int64_t channels = pixels.lanes_of(block);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const float* const value = values + (i * winograd_tile + j) * lanes;
      float* const to = y + pixels.offset(place.sample, block, place.row + i, place.column + j);
#pragma omp simd
      for (int lane = 0; lane < lanes; ++lane) to[lane] = value[lane] + bias[lane];
      if (channels < lanes) std::fill(to + channels, to + lanes, 0.F);
    }
}

template <int lanes>
PLEXAURA_INLINE void write_block(const WinogradTiles& tiles, const PixelView& pixels, const TileRange& range,
                                 std::int64_t block, const float* products, std::int64_t step,
                                 const float* bias, float* y) {
  alignas(64) float addend[lanes] = {};
  if (bias != nullptr) std::copy_n(bias + block * lanes, pixels.lanes_of(block), addend);
  for (std::int64_t tile = range.begin; tile < range.end; ++tile, products += winograd_panel) {
    alignas(64) float rows[4 * 6 * lanes];
    alignas(64) float values[4 * 4 * lanes];
    for (std::int64_t j = 0; j < 6; ++j)
      transform_result_axis<lanes>(Vectors<const float>{products + j * step, 6 * step},
                                   Vectors<float>{rows + j * lanes, 6 * lanes});
    for (std::int64_t i = 0; i < 4; ++i)
      transform_result_axis<lanes>(Vectors<const float>{rows + 6 * i * lanes, lanes},
                                   Vectors<float>{values + 4 * i * lanes, lanes});
    write_pixels<lanes>(pixels, tiles.place_of(tile), block, values, addend, y);
  }
}

// Returns the offsets of some channels; fewer where the channels end.
PLEXAURA_INLINE std::span<const std::int64_t> part_of(const std::vector<std::int64_t>& offsets,
                                                      std::int64_t first, std::int64_t count) {
  const std::int64_t begin = std::min(first, std::ssize(offsets));
  return std::span(offsets).subspan(static_cast<std::size_t>(begin),
                                    static_cast<std::size_t>(std::min(count, std::ssize(offsets) - begin)));
}

// Reads windows, whose elements of one place are apart, to [3, 3, lanes].
PLEXAURA_INLINE void gather_windows(const WindowOffsets& offsets, const float* window,
                                    std::span<const std::int64_t> results, float (&to)[9 * 8]) {
  for (std::size_t lane = 0; lane < results.size(); ++lane)
    for (std::size_t place = 0; place < 9; ++place)
      to[place * 8 + lane] = window[results[lane] + offsets.row[place / 3] + offsets.column[place % 3]];
}

// Transforms windows. at(row, column) gives the address of the vector of one place.
template <int lanes, class At>
PLEXAURA_INLINE void transform_window_lanes(const At& at, float* to, std::int64_t step) {
  alignas(64) float rows[6 * 3 * lanes];
  for (std::size_t j = 0; j < 3; ++j) {
    const float* const column[3] = {at(0, j), at(1, j), at(2, j)};
    transform_window_axis<lanes>(column, Vectors<float>{rows + j * lanes, 3 * lanes});
  }
  for (std::int64_t i = 0; i < 6; ++i)
    transform_window_axis<lanes>(Vectors<const float>{rows + 3 * i * lanes, lanes},
                                 Vectors<float>{to + 6 * i * step, step});
}

}  // namespace

PLEXAURA_CLONES void transform_windows(const WindowOffsets& offsets, const float* weights, std::int64_t panel,
                                       std::int64_t channels, float* to) {
  constexpr std::int64_t lanes = 8;
  const std::int64_t step = step_of_points(channels * winograd_panel);
  for (std::int64_t half = 0; half < winograd_panel; half += lanes) {
    const std::span<const std::int64_t> results =
        part_of(offsets.result, panel * winograd_panel + half, lanes);
    const bool are_in_row = std::ssize(results) == lanes && results.back() - results.front() == lanes - 1;
    alignas(64) float gathered[9 * lanes] = {};
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      float* const points_to = to + channel * winograd_panel + half;
      const bool is_padding = channel >= std::ssize(offsets.source);
      const float* const window =
          is_padding ? nullptr : weights + offsets.source[static_cast<std::size_t>(channel)];
      if (are_in_row && !is_padding) {
        const float* const first = window + results.front();
        transform_window_lanes<lanes>(
            [&](std::size_t row, std::size_t column)
                __attribute__((always_inline)) { return first + offsets.row[row] + offsets.column[column]; },
            points_to, step);
        continue;
      }
      if (is_padding)
        std::ranges::fill(gathered, 0.F);
      else
        gather_windows(offsets, window, results, gathered);
      transform_window_lanes<lanes>(
          [&](std::size_t row, std::size_t column)
              __attribute__((always_inline)) { return gathered + (3 * row + column) * lanes; },
          points_to, step);
    }
  }
}

PLEXAURA_CLONES void transform_source(const WinogradTiles& tiles, const WinogradSource& source,
                                      const float* x, const TileRange& range, float* to,
                                      const PointPlaces& places) {
  if (source.pixels.lanes == 8)
    transform_tiles<8>(tiles, source, x, range, to, places);
  else
    transform_tiles<16>(tiles, source, x, range, to, places);
}

PLEXAURA_CLONES void multiply_points(const WinogradProduct& product, const float* source,
                                     const float* windows, float* products) {
  for (int point = 0; point < points_of_tile; ++point)
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
