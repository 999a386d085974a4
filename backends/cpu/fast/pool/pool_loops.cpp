#include "backends/cpu/fast/pool/pool_loops.h"

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/pool/pool_window.h"

namespace plexaura::fast {

namespace {

// The largest elements so far, and their places in the window.
template <int lanes>
struct Largest {
  float value[lanes];
  std::int32_t place[lanes];
};

// A NaN counts as larger than any number. Of several NaNs the first one is chosen.
template <int lanes>
PLEXAURA_INLINE void look_at(Largest<lanes>& largest, const float* pixel, std::int32_t place) {
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) {
    const float value = pixel[lane];
    const float before = largest.value[lane];
    const bool better = (value > before) | ((value != value) & (before == before));
    largest.value[lane] = better ? value : before;
    largest.place[lane] = better ? place : largest.place[lane];
  }
}

template <int lanes>
PLEXAURA_INLINE void max_pool_body(const PoolShapes& shapes, PoolPlace at, const float* src, float* dst,
                                   std::uint8_t* index) {
  const Window2d window = shapes.window;
  const PixelView& x = shapes.src;
  const PixelView& y = shapes.dst;
  std::int32_t is_channel[lanes];  // 255, or 0 for channels of the padding
  for (int lane = 0; lane < lanes; ++lane) is_channel[lane] = at.block * lanes + lane < y.channels ? 255 : 0;
  const Inside h = inside(at.row, window.kernel.h, window.stride.h, window.padding.h, x.height);
  for (std::int64_t column = 0; column < y.width; ++column) {
    const Inside w = inside(column, window.kernel.w, window.stride.w, window.padding.w, x.width);
    const float* corner = src + x.offset(at.sample, at.block, h.first, w.first);
    Largest<lanes> largest;
    const auto first = static_cast<std::int32_t>(h.begin * window.kernel.w + w.begin);
    for (int lane = 0; lane < lanes; ++lane) largest.value[lane] = corner[lane];
    for (int lane = 0; lane < lanes; ++lane) largest.place[lane] = first;
    for (std::int64_t a = h.begin; a < h.end; ++a) {
      const float* pixel = corner + (a - h.begin) * x.width * x.row_stride;
      auto place = static_cast<std::int32_t>(a * window.kernel.w + w.begin);
      for (std::int64_t b = w.begin; b < w.end; ++b, ++place, pixel += x.row_stride)
        look_at<lanes>(largest, pixel, place);
    }
    const std::int64_t to = y.offset(at.sample, at.block, at.row, column);
    if (dst != nullptr)
      for (int lane = 0; lane < lanes; ++lane) dst[to + lane] = largest.value[lane];
    if (index != nullptr)
      for (int lane = 0; lane < lanes; ++lane)
        index[to + lane] = static_cast<std::uint8_t>(largest.place[lane] & is_channel[lane]);
  }
}

template <int lanes>
PLEXAURA_INLINE void tiling_grad_body(const PoolShapes& shapes, PoolPlace at, const float* diff_dst,
                                      const std::uint8_t* index, float* diff_src) {
  const Size2d kernel = shapes.window.kernel;
  const PixelView& x = shapes.src;
  const PixelView& y = shapes.dst;
  const std::int64_t step = x.row_stride;
  float* to = diff_src + x.offset(at.sample, at.block, at.row, 0);
  const std::int64_t window_row = at.row / kernel.h;
  const std::int64_t windows = window_row < y.height ? y.width : 0;
  const std::int64_t from = y.offset(at.sample, at.block, window_row, 0);
  for (std::int64_t j = 0; j < windows; ++j) {
    auto place = static_cast<std::int32_t>(at.row % kernel.h * kernel.w);
    const std::uint8_t* chosen = index + from + j * y.row_stride;
    const float* grad = diff_dst + from + j * y.row_stride;
    for (std::int64_t b = 0; b < kernel.w; ++b, ++place, to += step) {
#pragma omp simd
      for (int lane = 0; lane < lanes; ++lane) to[lane] = chosen[lane] == place ? grad[lane] : 0.F;
    }
  }
  for (std::int64_t column = windows * kernel.w; column < x.width; ++column, to += step)
    for (int lane = 0; lane < lanes; ++lane) to[lane] = 0.F;
}

// Adds the gradient of one window to the pixels that the window chose.
template <int lanes>
PLEXAURA_INLINE void add_to_chosen(const float* diff_dst, const std::uint8_t* index, std::int32_t first_place,
                                   std::int64_t pixels, std::int64_t step, float* to) {
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel, to += step) {
    const std::int32_t place = first_place + static_cast<std::int32_t>(pixel);
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) to[lane] += index[lane] == place ? diff_dst[lane] : 0.F;
  }
}

template <int lanes>
PLEXAURA_INLINE void plane_grad_body(const PoolShapes& shapes, PoolPlace at, const float* diff_dst,
                                     const std::uint8_t* index, float* diff_src) {
  const Window2d window = shapes.window;
  const PixelView x = shapes.src;
  const PixelView y = shapes.dst;
  float* plane = diff_src + x.offset(at.sample, at.block, 0, 0);
  for (std::int64_t pixel = 0; pixel < x.height * x.width; ++pixel)
    for (int lane = 0; lane < lanes; ++lane) plane[pixel * x.row_stride + lane] = 0.F;
  for (std::int64_t i = 0; i < y.height; ++i) {
    const Inside h = inside(i, window.kernel.h, window.stride.h, window.padding.h, x.height);
    for (std::int64_t j = 0; j < y.width; ++j) {
      const Inside w = inside(j, window.kernel.w, window.stride.w, window.padding.w, x.width);
      const std::int64_t from = y.offset(at.sample, at.block, i, j);
      for (std::int64_t a = h.begin; a < h.end; ++a)
        add_to_chosen<lanes>(diff_dst + from, index + from,
                             static_cast<std::int32_t>(a * window.kernel.w + w.begin), w.end - w.begin,
                             x.row_stride,
                             plane + ((h.first + a - h.begin) * x.width + w.first) * x.row_stride);
    }
  }
}

#define PLEXAURA_FOR_LANES(lanes)                                                                         \
  PLEXAURA_CLONES void max_pool_##lanes(const PoolShapes& shapes, PoolPlace at, const float* src,         \
                                        float* dst, std::uint8_t* index) {                                \
    max_pool_body<lanes>(shapes, at, src, dst, index);                                                    \
  }                                                                                                       \
  PLEXAURA_CLONES void tiling_grad_##lanes(const PoolShapes& shapes, PoolPlace at, const float* diff_dst, \
                                           const std::uint8_t* index, float* diff_src) {                  \
    tiling_grad_body<lanes>(shapes, at, diff_dst, index, diff_src);                                       \
  }                                                                                                       \
  PLEXAURA_CLONES void plane_grad_##lanes(const PoolShapes& shapes, PoolPlace at, const float* diff_dst,  \
                                          const std::uint8_t* index, float* diff_src) {                   \
    plane_grad_body<lanes>(shapes, at, diff_dst, index, diff_src);                                        \
  }
PLEXAURA_FOR_LANES(8)
PLEXAURA_FOR_LANES(16)
#undef PLEXAURA_FOR_LANES

}  // namespace

bool is_tiling(const Window2d& window) {
  return window.kernel == window.stride && window.padding == Size2d{0, 0};
}

void max_pool_row(const PoolShapes& shapes, PoolPlace at, const float* src, float* dst, std::uint8_t* index) {
  shapes.dst.lanes == 16 ? max_pool_16(shapes, at, src, dst, index) : max_pool_8(shapes, at, src, dst, index);
}

void tiling_grad_row(const PoolShapes& shapes, PoolPlace at, const float* diff_dst, const std::uint8_t* index,
                     float* diff_src) {
  shapes.dst.lanes == 16 ? tiling_grad_16(shapes, at, diff_dst, index, diff_src)
                         : tiling_grad_8(shapes, at, diff_dst, index, diff_src);
}

void max_pool_grad_plane(const PoolShapes& shapes, PoolPlace at, const float* diff_dst,
                         const std::uint8_t* index, float* diff_src) {
  shapes.dst.lanes == 16 ? plane_grad_16(shapes, at, diff_dst, index, diff_src)
                         : plane_grad_8(shapes, at, diff_dst, index, diff_src);
}

}  // namespace plexaura::fast
