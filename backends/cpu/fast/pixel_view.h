#pragma once

#include <cstdint>
#include <optional>

#include "backends/cpu/fast/channel_view.h"
#include "core/tensor/layout.h"

namespace plexaura::fast {

// A value [N, C, H, W] as vectors of neighbouring channels, with a position for each pixel of a sample: blocked
// channels, or channels last.
struct PixelView : ChannelView {
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t offset(std::int64_t sample, std::int64_t block, std::int64_t row, std::int64_t column) const {
    return ChannelView::offset(sample, block) + (row * width + column) * row_stride;
  }
};

std::optional<PixelView> pixel_view(const Layout& layout, const Shape& shape);

}  // namespace plexaura::fast
