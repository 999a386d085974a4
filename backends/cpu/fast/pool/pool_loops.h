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

// True if the windows do not overlap and there is no padding. Then each pixel belongs to at most one window,
// and each row of the gradient can be written by itself.
bool is_tiling(const Window2d& window);

// The loops of max pooling for elements of type T, float or double.
template <class T>
struct MaxPoolLoops {
  // Pools one row. dst and index may be null.
  void (*row)(const PoolShapes& shapes, PoolPlace at, const T* src, T* dst, std::uint8_t* index);
  // Computes one row of the gradient if is_tiling().
  void (*tiling_grad_row)(const PoolShapes& shapes, PoolPlace at, const T* diff_dst,
                          const std::uint8_t* index, T* diff_src);
  // Computes the gradient of all rows of a sample and block, for any window.
  void (*grad_plane)(const PoolShapes& shapes, PoolPlace at, const T* diff_dst, const std::uint8_t* index,
                     T* diff_src);
};

// `lanes` is 8 or 16.
template <class T>
MaxPoolLoops<T> max_pool_loops(std::int64_t lanes);

}  // namespace plexaura::fast
