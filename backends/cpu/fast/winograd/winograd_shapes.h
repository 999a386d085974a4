#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/fast/winograd/winograd_loops.h"
#include "core/ops/conv2d.h"

// Code that Winograd's convolution and its gradient of the weights share outside of the loops.

namespace plexaura::fast {

// Estimates by which the work is divided among threads.
constexpr double winograd_multiplication_nanoseconds = 0.03;
constexpr double winograd_transform_nanoseconds = 30;  // of one tile or window of one channel

constexpr std::int64_t divided_up(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

inline WinogradTiles tiles_of_images(std::int64_t samples, std::int64_t height, std::int64_t width) {
  return {samples, divided_up(height, winograd_tile), divided_up(width, winograd_tile)};
}

inline std::int64_t panels_of(const PixelView& pixels) {
  return divided_up(pixels.blocks * pixels.lanes, winograd_panel);
}

// Returns true for windows of 3x3 without stride, dilation and groups, and with enough channels to fill a panel.
inline bool fits_winograd(const Shape& weights, const Conv2dOptions& options) {
  constexpr std::int64_t fewest_channels = 16;
  return weights[2] == 3 && weights[3] == 3 && std::min(weights[0], weights[1]) >= fewest_channels &&
         options.stride == Size2d{} && options.dilation == Size2d{} && options.groups == 1;
}

inline WindowOffsets window_offsets(const Layout& layout, const Shape& weights) {
  const auto of = layout.axis_offsets(weights);
  return {of[0], of[1], {of[2][0], of[2][1], of[2][2]}, {of[3][0], of[3][1], of[3][2]}};
}

}  // namespace plexaura::fast
