#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor/layout.h"

namespace plexaura::fast {

// A value [N, C, H, W] as vectors of neighbouring channels, one for each pixel: blocked channels, or channels
// last.
struct PixelView {
  std::int64_t samples = 0;
  std::int64_t blocks = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t sample_stride = 0;
  std::int64_t block_stride = 0;
  std::int64_t pixel_stride = 0;
  std::int64_t lanes = 0;     // 8 or 16
  std::int64_t channels = 0;  // without padding

  std::int64_t offset(std::int64_t sample, std::int64_t block, std::int64_t row, std::int64_t column) const {
    return sample * sample_stride + block * block_stride + (row * width + column) * pixel_stride;
  }
};

std::optional<PixelView> pixel_view(const Layout& layout, const Shape& shape);

}  // namespace plexaura::fast
