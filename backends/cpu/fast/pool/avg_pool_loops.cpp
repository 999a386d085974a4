#include "backends/cpu/fast/pool/avg_pool_loops.h"

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/pool/pool_window.h"

namespace plexaura::fast {

namespace {

// Returns the weight of each element of a window, of which the parts `h` and `w` lie inside the image.
template <class T>
PLEXAURA_INLINE T weight_of(const AvgPoolShapes& shapes, Inside h, Inside w) {
  const Size2d kernel = shapes.of.window.kernel;
  const std::int64_t inside = (h.end - h.begin) * (w.end - w.begin);
  return T(1) / static_cast<T>(shapes.count_include_pad ? kernel.h * kernel.w : inside);
}

template <class T, int lanes>
PLEXAURA_INLINE void avg_pool_body(const AvgPoolShapes& shapes, PoolPlace at, const T* src, T* dst) {
  const Window2d window = shapes.of.window;
  const PixelView& x = shapes.of.src;
  const PixelView& y = shapes.of.dst;
  const Inside h = inside(at.row, window.kernel.h, window.stride.h, window.padding.h, x.height);
  for (std::int64_t column = 0; column < y.width; ++column) {
    const Inside w = inside(column, window.kernel.w, window.stride.w, window.padding.w, x.width);
    const T* pixel = src + x.offset(at.sample, at.block, h.first, w.first);
    T sum[lanes] = {};
    for (std::int64_t a = h.begin; a < h.end; ++a, pixel += x.width * x.row_stride)
      for (std::int64_t b = 0; b < w.end - w.begin; ++b) {
#pragma omp simd
        for (int lane = 0; lane < lanes; ++lane) sum[lane] += pixel[b * x.row_stride + lane];
      }
    const T weight = weight_of<T>(shapes, h, w);
    T* to = dst + y.offset(at.sample, at.block, at.row, column);
    for (int lane = 0; lane < lanes; ++lane) to[lane] = sum[lane] * weight;
  }
}

// The windows along one axis that contain a position: [begin, end).
struct Seen {
  std::int64_t begin;
  std::int64_t end;
};

PLEXAURA_INLINE Seen windows_at(std::int64_t position, std::int64_t kernel, std::int64_t stride,
                                std::int64_t padding, std::int64_t windows) {
  const std::int64_t from = position + padding;  // position in the padded input
  const std::int64_t begin = from < kernel ? 0 : (from - kernel) / stride + 1;
  const std::int64_t end = from / stride + 1;
  return {begin, end < windows ? end : windows};
}

template <class T, int lanes>
PLEXAURA_INLINE void avg_pool_grad_body(const AvgPoolShapes& shapes, PoolPlace at, const T* diff_dst,
                                        T* diff_src) {
  const Window2d window = shapes.of.window;
  const PixelView& x = shapes.of.src;
  const PixelView& y = shapes.of.dst;
  const Seen rows = windows_at(at.row, window.kernel.h, window.stride.h, window.padding.h, y.height);
  for (std::int64_t column = 0; column < x.width; ++column) {
    const Seen columns = windows_at(column, window.kernel.w, window.stride.w, window.padding.w, y.width);
    T sum[lanes] = {};
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      const Inside h = inside(i, window.kernel.h, window.stride.h, window.padding.h, x.height);
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        const Inside w = inside(j, window.kernel.w, window.stride.w, window.padding.w, x.width);
        const T weight = weight_of<T>(shapes, h, w);
        const T* grad = diff_dst + y.offset(at.sample, at.block, i, j);
#pragma omp simd
        for (int lane = 0; lane < lanes; ++lane) sum[lane] += grad[lane] * weight;
      }
    }
    T* to = diff_src + x.offset(at.sample, at.block, at.row, column);
    for (int lane = 0; lane < lanes; ++lane) to[lane] = sum[lane];
  }
}

#define PLEXAURA_POOL_LOOPS(T, lanes)                                                                  \
  PLEXAURA_CLONES void avg_pool_##T##_##lanes(const AvgPoolShapes& shapes, PoolPlace at, const T* src, \
                                              T* dst) {                                                \
    avg_pool_body<T, lanes>(shapes, at, src, dst);                                                     \
  }                                                                                                    \
  PLEXAURA_CLONES void avg_pool_grad_##T##_##lanes(const AvgPoolShapes& shapes, PoolPlace at,          \
                                                   const T* diff_dst, T* diff_src) {                   \
    avg_pool_grad_body<T, lanes>(shapes, at, diff_dst, diff_src);                                      \
  }
PLEXAURA_POOL_LOOPS(float, 8)
PLEXAURA_POOL_LOOPS(float, 16)
PLEXAURA_POOL_LOOPS(double, 8)
PLEXAURA_POOL_LOOPS(double, 16)
#undef PLEXAURA_POOL_LOOPS

}  // namespace

template <>
AvgPoolLoops<float> avg_pool_loops(std::int64_t lanes) {
  if (lanes == 16) return {avg_pool_float_16, avg_pool_grad_float_16};
  return {avg_pool_float_8, avg_pool_grad_float_8};
}

template <>
AvgPoolLoops<double> avg_pool_loops(std::int64_t lanes) {
  if (lanes == 16) return {avg_pool_double_16, avg_pool_grad_double_16};
  return {avg_pool_double_8, avg_pool_grad_double_8};
}

}  // namespace plexaura::fast
