#include "backends/cpu/fast/pool_loops.h"

#include <algorithm>

#include "backends/cpu/fast/lanes.h"

namespace plexaura::fast {

namespace {

template <int count>
struct Integers {
  typedef std::int32_t Wide __attribute__((vector_size(count * sizeof(std::int32_t))));
  typedef std::uint8_t Narrow __attribute__((vector_size(count)));
};

// The part of a window along one axis that lies inside: [begin, end) of the kernel, from position `first` on.
struct Inside {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t first;
};

PLEXAURA_INLINE Inside inside(std::int64_t place, std::int64_t kernel, std::int64_t stride,
                              std::int64_t padding, std::int64_t extent) {
  const std::int64_t start = place * stride - padding;
  const std::int64_t begin = start < 0 ? -start : 0;
  const std::int64_t end = kernel < extent - start ? kernel : extent - start;
  return {begin, end, start + begin};
}

// The windows [begin, end) that see a position along one axis.
struct Viewers {
  std::int64_t begin;
  std::int64_t end;
};

PLEXAURA_INLINE Viewers viewers(std::int64_t position, std::int64_t kernel, std::int64_t stride,
                                std::int64_t padding, std::int64_t windows) {
  const std::int64_t moved = position + padding;
  const std::int64_t begin = moved < kernel ? 0 : (moved - kernel) / stride + 1;
  const std::int64_t end = moved / stride + 1;
  return {begin, end < windows ? end : windows};
}

template <int lanes>
PLEXAURA_INLINE void max_pool_body(const PoolShapes& shapes, PoolPlace at, const float* src, float* dst,
                                   std::uint8_t* index) {
  using Wide = typename Integers<lanes>::Wide;
  using Narrow = typename Integers<lanes>::Narrow;
  const Window2d& window = shapes.window;
  const PixelView& x = shapes.src;
  const PixelView& y = shapes.dst;
  Wide real{};  // all bits set in lanes that are channels
  for (int lane = 0; lane < lanes; ++lane) real[lane] = at.block * lanes + lane < y.channels ? -1 : 0;
  const Inside h = inside(at.row, window.kernel.h, window.stride.h, window.padding.h, x.height);
  for (std::int64_t column = 0; column < y.width; ++column) {
    const Inside w = inside(column, window.kernel.w, window.stride.w, window.padding.w, x.width);
    const float* corner = src + x.offset(at.sample, at.block, h.first, w.first);
    Vector<lanes> largest;
    load<lanes>(largest, corner);
    auto place = static_cast<std::int32_t>(h.begin * window.kernel.w + w.begin);
    Wide best = Wide{} + place;
    for (std::int64_t a = h.begin; a < h.end; ++a) {
      const float* pixel = corner + (a - h.begin) * x.width * x.pixel_stride;
      place = static_cast<std::int32_t>(a * window.kernel.w + w.begin);
      for (std::int64_t b = w.begin; b < w.end; ++b, ++place, pixel += x.pixel_stride) {
        Vector<lanes> value;
        load<lanes>(value, pixel);
        const Wide first_nan = (value != value) & (largest == largest);
        const Wide better = (value > largest) | first_nan;
        largest = better ? value : largest;
        best = better ? Wide{} + place : best;
      }
    }
    const std::int64_t to = y.offset(at.sample, at.block, at.row, column);
    if (dst != nullptr) store<lanes>(dst + to, largest);
    if (index == nullptr) continue;
    const Narrow narrow = __builtin_convertvector(best & real, Narrow);
    std::memcpy(index + to, &narrow, sizeof(narrow));
  }
}

template <int lanes>
PLEXAURA_INLINE void max_pool_grad_body(const PoolShapes& shapes, PoolPlace at, const float* diff_dst,
                                        const std::uint8_t* index, float* diff_src) {
  using Wide = typename Integers<lanes>::Wide;
  using Narrow = typename Integers<lanes>::Narrow;
  const Window2d& window = shapes.window;
  const PixelView& x = shapes.src;
  const PixelView& y = shapes.dst;
  const Viewers rows = viewers(at.row, window.kernel.h, window.stride.h, window.padding.h, y.height);
  for (std::int64_t column = 0; column < x.width; ++column) {
    const Viewers columns = viewers(column, window.kernel.w, window.stride.w, window.padding.w, y.width);
    Vector<lanes> sum{};
    for (std::int64_t i = rows.begin; i < rows.end; ++i)
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        const std::int64_t a = at.row + window.padding.h - i * window.stride.h;
        const std::int64_t b = column + window.padding.w - j * window.stride.w;
        const std::int64_t from = y.offset(at.sample, at.block, i, j);
        Narrow narrow;
        std::memcpy(&narrow, index + from, sizeof(narrow));
        const Wide chosen =
            __builtin_convertvector(narrow, Wide) == static_cast<std::int32_t>(a * window.kernel.w + b);
        Vector<lanes> grad;
        load<lanes>(grad, diff_dst + from);
        sum += chosen ? grad : Vector<lanes>{};
      }
    store<lanes>(diff_src + x.offset(at.sample, at.block, at.row, column), sum);
  }
}

#define PLEXAURA_FOR_LANES(lanes)                                                                           \
  PLEXAURA_CLONES void max_pool_##lanes(const PoolShapes& shapes, PoolPlace at, const float* src,           \
                                        float* dst, std::uint8_t* index) {                                  \
    max_pool_body<lanes>(shapes, at, src, dst, index);                                                      \
  }                                                                                                         \
  PLEXAURA_CLONES void max_pool_grad_##lanes(const PoolShapes& shapes, PoolPlace at, const float* diff_dst, \
                                             const std::uint8_t* index, float* diff_src) {                  \
    max_pool_grad_body<lanes>(shapes, at, diff_dst, index, diff_src);                                       \
  }
PLEXAURA_FOR_LANES(8)
PLEXAURA_FOR_LANES(16)
#undef PLEXAURA_FOR_LANES

}  // namespace

void max_pool_row(const PoolShapes& shapes, PoolPlace at, const float* src, float* dst, std::uint8_t* index) {
  shapes.dst.lanes == 16 ? max_pool_16(shapes, at, src, dst, index) : max_pool_8(shapes, at, src, dst, index);
}

void max_pool_grad_row(const PoolShapes& shapes, PoolPlace at, const float* diff_dst,
                       const std::uint8_t* index, float* diff_src) {
  shapes.dst.lanes == 16 ? max_pool_grad_16(shapes, at, diff_dst, index, diff_src)
                         : max_pool_grad_8(shapes, at, diff_dst, index, diff_src);
}

}  // namespace plexaura::fast
