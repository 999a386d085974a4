#pragma once

#include <cstdint>

#include "backends/cpu/fast/winograd/winograd_loops.h"
#include "backends/cpu/fast/winograd/winograd_transforms.h"

// Functions with which the transforms of Winograd's convolutions read pixels and write points. They pass addresses to the
// transforms instead of vectors, because g++ 12 copies vectors in halves, and waits for the halves when it reads the copy.

namespace plexaura::fast {

// Stands for the pixels outside of an image.
alignas(64) inline constexpr float no_pixel[winograd_panel] = {};

// Calls body(pixels) with the size x size pixels of a tile that begins at `place`. pixels(column) gives the vectors of a
// column, from above to below. Pixels outside of the image are zero.
template <int size, class Body>
PLEXAURA_INLINE void with_pixels(const PixelView& pixels, const float* x, const TilePlace& place,
                                 std::int64_t block, const Body& body) {
  const std::int64_t across = pixels.row_stride;
  const std::int64_t down = pixels.width * across;
  const float* const image = x + pixels.ChannelView::offset(place.sample, block);
  if (place.row >= 0 && place.column >= 0 && place.row + size <= pixels.height &&
      place.column + size <= pixels.width) {
    const float* const first = image + place.row * down + place.column * across;
    body([=](std::int64_t column) { return Vectors<const float>{first + column * across, down}; });
    return;
  }
  const float* listed[size * size];
  for (std::int64_t i = 0; i < size; ++i)
    for (std::int64_t j = 0; j < size; ++j) {
      const std::int64_t row = place.row + i;
      const std::int64_t column = place.column + j;
      const bool is_inside = row >= 0 && column >= 0 && row < pixels.height && column < pixels.width;
      listed[i * size + j] = is_inside ? image + row * down + column * across : no_pixel;
    }
  body([&](std::int64_t column) { return ListedVectors{listed + column, size}; });
}

// Returns the address of the first point of one tile and one block of channels. `to` points to the tile's numbers.
PLEXAURA_INLINE float* first_point(float* to, std::int64_t channel, const PointPlaces& places) {
  return to + channel / winograd_panel * places.panel + channel % winograd_panel;
}

}  // namespace plexaura::fast
