#pragma once

#include <cstdint>

#include "backends/cpu/fast/pixel_view.h"
#include "core/ops/window.h"

namespace plexaura::fast {

// Pooling of one row of pixels, of one sample and one block of channels.

struct PoolShapes {
  Window2d window;
  PixelView src;
  PixelView dst;
};

struct PoolPlace {
  std::int64_t sample;
  std::int64_t block;
  std::int64_t row;  // a row of dst forward, of src backward; 0 if the call handles all rows
};

// dst and index may be null.
void max_pool_row(const PoolShapes& shapes, PoolPlace at, const float* src, float* dst, std::uint8_t* index);

// True if the windows do not overlap and there is no padding. Then each pixel belongs to at most one window,
// and each row of the gradient can be written by itself.
bool is_tiling(const Window2d& window);
void tiling_grad_row(const PoolShapes& shapes, PoolPlace at, const float* diff_dst, const std::uint8_t* index,
                     float* diff_src);

// Computes the gradient of all rows of a sample and block, for any window.
void max_pool_grad_plane(const PoolShapes& shapes, PoolPlace at, const float* diff_dst,
                         const std::uint8_t* index, float* diff_src);

}  // namespace plexaura::fast
