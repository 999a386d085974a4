#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor/layout.h"

namespace plexaura::fast {

// A view of a value [N, C, ...] as vectors of neighbouring channels. The vector of block b at position r of
// sample n begins at element n * sample_stride + b * block_stride + r * row_stride. Blocked channels,
// channels last and matrices have this form.
struct ChannelView {
  std::int64_t samples = 0;
  std::int64_t blocks = 0;
  std::int64_t rows = 0;
  std::int64_t sample_stride = 0;
  std::int64_t block_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t lanes = 0;     // 8 or 16
  std::int64_t channels = 0;  // without padding

  std::int64_t count() const { return samples * rows; }  // elements of one channel
  std::int64_t offset(std::int64_t sample, std::int64_t block) const {
    return sample * sample_stride + block * block_stride;
  }
  std::int64_t lanes_of(std::int64_t block) const {
    return channels - block * lanes < lanes ? channels - block * lanes : lanes;
  }
};

// Returns the view of a value in this layout. Returns nothing for a layout without such vectors.
std::optional<ChannelView> channel_view(const Layout& layout, const Shape& shape);

// Returns channels in blocks of 16, or in blocks of 8 if these need less padding.
Layout blocked_layout(const Shape& shape);

}  // namespace plexaura::fast
