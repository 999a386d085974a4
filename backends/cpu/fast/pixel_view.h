#pragma once

#include <cstdint>
#include <optional>

#include "backends/cpu/fast/channel_view.h"
#include "core/tensor/layout.h"

namespace plexaura::fast {

// A view of a value [N, C, H, W] as vectors of neighbouring channels, with one position for each pixel of a
// sample. The channels are blocked, or last.
struct PixelView : ChannelView {
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t offset(std::int64_t sample, std::int64_t block, std::int64_t row, std::int64_t column) const {
    return ChannelView::offset(sample, block) + (row * width + column) * row_stride;
  }
};

std::optional<PixelView> pixel_view(const Layout& layout, const Shape& shape);

}  // namespace plexaura::fast
