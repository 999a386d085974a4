#include "backends/cpu/fast/winograd/winograd_weight_grad_loops.h"

#include <algorithm>
#include <span>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/matmul/products.h"
#include "backends/cpu/fast/winograd/winograd_transforms.h"

namespace plexaura::fast {

namespace {

constexpr int panel_lanes = static_cast<int>(winograd_panel);

// Writes the numbers of a panel to the weights of neighbouring channels of the result. These are in a row, or each is at
// its own offset.
PLEXAURA_INLINE void write_lanes(const float* values, std::span<const std::int64_t> offsets, float* to) {
  constexpr std::size_t row = 8;
  for (std::size_t lane = 0; lane < offsets.size(); lane += row) {
    const std::size_t end = std::min(lane + row, offsets.size());
    if (end - lane == row && offsets[end - 1] - offsets[lane] == row - 1)
      std::copy_n(values + lane, row, to + offsets[lane]);
    else
      for (std::size_t i = lane; i < end; ++i) to[offsets[i]] = values[i];
  }
}

}  // namespace

PLEXAURA_CLONES void multiply_tiles(const WeightGradProduct& product, const float* source,
                                    const float* gradient, float* products, bool adds) {
  for (int point = 0; point < points_of_tile; ++point)
    for (std::int64_t channel = 0; channel < product.channels; channel += winograd_panel)
      for (std::int64_t tile = 0; tile < product.tiles; tile += tiles_of_sum) {
        const float* const factors = source + point * product.source.point +
                                     channel / winograd_panel * product.source.panel + tile * winograd_panel;
        multiply_panel<AddTo::sums, panel_lanes, float>(
            {.a = {factors, 1, winograd_panel},
             .panel = gradient + point * product.gradient.point + tile * winograd_panel,
             .panel_step = winograd_panel,
             .inner = std::min(tiles_of_sum, product.tiles - tile),
             .y = products + point * product.point_step() + channel * winograd_panel,
             .y_step = winograd_panel,
             .columns = winograd_panel},
            std::min(winograd_panel, product.channels - channel), adds || tile > 0);
      }
}

PLEXAURA_CLONES void write_windows(const WindowOffsets& offsets, std::int64_t first, std::int64_t panel,
                                   const WeightGradProduct& product, const float* products, float* weights) {
  const std::span<const std::int64_t> results =
      std::span(offsets.result).subspan(static_cast<std::size_t>(panel * winograd_panel));
  const auto lanes = results.first(std::min<std::size_t>(panel_lanes, results.size()));
  const std::int64_t end = std::min(first + product.channels, std::ssize(offsets.source));
  for (std::int64_t channel = first; channel < end; ++channel, products += winograd_panel) {
    alignas(64) float rows[3 * 6 * panel_lanes];
    alignas(64) float window[3 * 3 * panel_lanes];
    const std::int64_t step = product.point_step();
    for (std::int64_t j = 0; j < 6; ++j)
      transform_window_grad_axis<panel_lanes>(Vectors<const float>{products + j * step, 6 * step},
                                              Vectors<float>{rows + j * panel_lanes, 6 * winograd_panel});
    for (std::int64_t i = 0; i < 3; ++i)
      transform_window_grad_axis<panel_lanes>(Vectors<const float>{rows + 6 * i * panel_lanes, panel_lanes},
                                              Vectors<float>{window + 3 * i * panel_lanes, panel_lanes});
    float* const at = weights + offsets.source[static_cast<std::size_t>(channel)];
    for (std::size_t place = 0; place < 9; ++place)
      write_lanes(window + place * panel_lanes, lanes,
                  at + offsets.row[place / 3] + offsets.column[place % 3]);
  }
}

}  // namespace plexaura::fast
