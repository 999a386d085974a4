#include "backends/cpu/fast/pool/pool_loops.h"

#include <type_traits>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/pool/pool_window.h"

namespace plexaura::fast {

namespace {

// A place in a window, as wide as an element, so that both are in vectors of as many lanes.
template <class T>
using Place = std::conditional_t<std::is_same_v<T, double>, std::int64_t, std::int32_t>;

// The largest elements so far, and their places in the window.
template <class T, int lanes>
struct Largest {
  T value[lanes];
  Place<T> place[lanes];
};

// A NaN counts as larger than any number. Of several NaNs the first one is chosen.
template <class T, int lanes>
PLEXAURA_INLINE void look_at(Largest<T, lanes>& largest, const T* pixel, Place<T> place) {
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) {
    const T value = pixel[lane];
    const T before = largest.value[lane];
    const bool better = (value > before) | ((value != value) & (before == before));
    largest.value[lane] = better ? value : before;
    largest.place[lane] = better ? place : largest.place[lane];
  }
}

template <class T, int lanes>
PLEXAURA_INLINE void max_pool_body(const PoolShapes& shapes, PoolPlace at, const T* src, T* dst,
                                   std::uint8_t* index) {
  const Window2d window = shapes.window;
  const PixelView& x = shapes.src;
  const PixelView& y = shapes.dst;
  Place<T> is_channel[lanes];  // 255, or 0 for channels of the padding
  for (int lane = 0; lane < lanes; ++lane) is_channel[lane] = at.block * lanes + lane < y.channels ? 255 : 0;
  const Inside h = inside(at.row, window.kernel.h, window.stride.h, window.padding.h, x.height);
  for (std::int64_t column = 0; column < y.width; ++column) {
    const Inside w = inside(column, window.kernel.w, window.stride.w, window.padding.w, x.width);
    const T* corner = src + x.offset(at.sample, at.block, h.first, w.first);
    Largest<T, lanes> largest;
    const auto first = static_cast<Place<T>>(h.begin * window.kernel.w + w.begin);
    for (int lane = 0; lane < lanes; ++lane) largest.value[lane] = corner[lane];
    for (int lane = 0; lane < lanes; ++lane) largest.place[lane] = first;
    for (std::int64_t a = h.begin; a < h.end; ++a) {
      const T* pixel = corner + (a - h.begin) * x.width * x.row_stride;
      auto place = static_cast<Place<T>>(a * window.kernel.w + w.begin);
      for (std::int64_t b = w.begin; b < w.end; ++b, ++place, pixel += x.row_stride)
        look_at<T, lanes>(largest, pixel, place);
    }
    const std::int64_t to = y.offset(at.sample, at.block, at.row, column);
    if (dst != nullptr)
      for (int lane = 0; lane < lanes; ++lane) dst[to + lane] = largest.value[lane];
    if (index != nullptr)
      for (int lane = 0; lane < lanes; ++lane)
        index[to + lane] = static_cast<std::uint8_t>(largest.place[lane] & is_channel[lane]);
  }
}

// The gradient of a window and the place that each lane chose. g++ 12 makes vectors of the selection only if both were
// read before, and the places are as wide as the elements.
template <class T, int lanes>
struct Chosen {
  PLEXAURA_INLINE Chosen(const T* diff_dst, const std::uint8_t* index) {
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) place_of[lane] = index[lane];
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) grad[lane] = diff_dst[lane];
  }
  PLEXAURA_INLINE T grad_at(Place<T> place, int lane) const {
    const T value = grad[lane];
    return place_of[lane] == place ? value : T(0);
  }

  T grad[lanes];
  Place<T> place_of[lanes];
};

template <class T, int lanes>
PLEXAURA_INLINE void tiling_grad_body(const PoolShapes& shapes, PoolPlace at, const T* diff_dst,
                                      const std::uint8_t* index, T* diff_src) {
  const Size2d kernel = shapes.window.kernel;
  const PixelView& x = shapes.src;
  const PixelView& y = shapes.dst;
  const std::int64_t step = x.row_stride;
  T* to = diff_src + x.offset(at.sample, at.block, at.row, 0);
  const std::int64_t window_row = at.row / kernel.h;
  const std::int64_t windows = window_row < y.height ? y.width : 0;
  const std::int64_t from = y.offset(at.sample, at.block, window_row, 0);
  for (std::int64_t j = 0; j < windows; ++j) {
    auto place = static_cast<Place<T>>(at.row % kernel.h * kernel.w);
    const Chosen<T, lanes> chosen(diff_dst + from + j * y.row_stride, index + from + j * y.row_stride);
    for (std::int64_t b = 0; b < kernel.w; ++b, ++place, to += step) {
#pragma omp simd
      for (int lane = 0; lane < lanes; ++lane) to[lane] = chosen.grad_at(place, lane);
    }
  }
  for (std::int64_t column = windows * kernel.w; column < x.width; ++column, to += step)
    for (int lane = 0; lane < lanes; ++lane) to[lane] = T(0);
}

// Adds the gradient of one window to those pixels of one of its rows that the window chose.
template <class T, int lanes>
PLEXAURA_INLINE void add_to_chosen(const Chosen<T, lanes>& chosen, Place<T> first_place, std::int64_t pixels,
                                   std::int64_t step, T* to) {
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel, to += step) {
    const Place<T> place = first_place + static_cast<Place<T>>(pixel);
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) to[lane] += chosen.grad_at(place, lane);
  }
}

template <class T, int lanes>
PLEXAURA_INLINE void plane_grad_body(const PoolShapes& shapes, PoolPlace at, const T* diff_dst,
                                     const std::uint8_t* index, T* diff_src) {
  const Window2d window = shapes.window;
  const PixelView x = shapes.src;
  const PixelView y = shapes.dst;
  T* plane = diff_src + x.offset(at.sample, at.block, 0, 0);
  for (std::int64_t pixel = 0; pixel < x.height * x.width; ++pixel)
    for (int lane = 0; lane < lanes; ++lane) plane[pixel * x.row_stride + lane] = T(0);
  for (std::int64_t i = 0; i < y.height; ++i) {
    const Inside h = inside(i, window.kernel.h, window.stride.h, window.padding.h, x.height);
    for (std::int64_t j = 0; j < y.width; ++j) {
      const Inside w = inside(j, window.kernel.w, window.stride.w, window.padding.w, x.width);
      const std::int64_t from = y.offset(at.sample, at.block, i, j);
      const Chosen<T, lanes> chosen(diff_dst + from, index + from);
      for (std::int64_t a = h.begin; a < h.end; ++a)
        add_to_chosen<T, lanes>(chosen, static_cast<Place<T>>(a * window.kernel.w + w.begin), w.end - w.begin,
                                x.row_stride,
                                plane + ((h.first + a - h.begin) * x.width + w.first) * x.row_stride);
    }
  }
}

#define PLEXAURA_POOL_LOOPS(T, lanes)                                                                       \
  PLEXAURA_CLONES void max_pool_##T##_##lanes(const PoolShapes& shapes, PoolPlace at, const T* src, T* dst, \
                                              std::uint8_t* index) {                                        \
    max_pool_body<T, lanes>(shapes, at, src, dst, index);                                                   \
  }                                                                                                         \
  PLEXAURA_CLONES void tiling_grad_##T##_##lanes(const PoolShapes& shapes, PoolPlace at, const T* diff_dst, \
                                                 const std::uint8_t* index, T* diff_src) {                  \
    tiling_grad_body<T, lanes>(shapes, at, diff_dst, index, diff_src);                                      \
  }                                                                                                         \
  PLEXAURA_CLONES void plane_grad_##T##_##lanes(const PoolShapes& shapes, PoolPlace at, const T* diff_dst,  \
                                                const std::uint8_t* index, T* diff_src) {                   \
    plane_grad_body<T, lanes>(shapes, at, diff_dst, index, diff_src);                                       \
  }
PLEXAURA_POOL_LOOPS(float, 8)
PLEXAURA_POOL_LOOPS(float, 16)
PLEXAURA_POOL_LOOPS(double, 8)
PLEXAURA_POOL_LOOPS(double, 16)
#undef PLEXAURA_POOL_LOOPS

}  // namespace

bool is_tiling(const Window2d& window) {
  return window.kernel == window.stride && window.padding == Size2d{0, 0};
}

#define PLEXAURA_POOL_LOOPS(T, lanes) \
  { max_pool_##T##_##lanes, tiling_grad_##T##_##lanes, plane_grad_##T##_##lanes }
template <>
MaxPoolLoops<float> max_pool_loops(std::int64_t lanes) {
  if (lanes == 16) return PLEXAURA_POOL_LOOPS(float, 16);
  return PLEXAURA_POOL_LOOPS(float, 8);
}

template <>
MaxPoolLoops<double> max_pool_loops(std::int64_t lanes) {
  if (lanes == 16) return PLEXAURA_POOL_LOOPS(double, 16);
  return PLEXAURA_POOL_LOOPS(double, 8);
}
#undef PLEXAURA_POOL_LOOPS

}  // namespace plexaura::fast
