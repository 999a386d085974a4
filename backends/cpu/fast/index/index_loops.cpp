#include "backends/cpu/fast/index/index_loops.h"

#include <algorithm>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

namespace {

template <class Bits>
PLEXAURA_INLINE void take(const IndexedLines& at, const Bits* src, Bits* dst, std::int64_t begin,
                          std::int64_t end) {
  const Lines& lines = at.lines;
  // A run shares one line if the elements of a line are neighbours. Otherwise it shares its place in neighbouring lines.
  const std::int64_t longest = lines.behind == 1 ? lines.extent : lines.behind;
  const std::int64_t runs_of_outer = lines.behind == 1 ? 1 : lines.extent;
  std::int64_t first = begin % longest;
  std::int64_t run = begin / longest % runs_of_outer;
  const Bits* from = src + begin / longest / runs_of_outer * at.extent * lines.behind;
  while (begin < end) {
    const std::int64_t count = std::min(longest - first, end - begin);
    const std::int64_t* indices = at.indices + begin;
    Bits* to = dst + begin;
    if (lines.behind == 1) {
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[indices[i]];
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[indices[i] * lines.behind + first + i];
    }
    begin += count;
    first = 0;
    if (++run < runs_of_outer) continue;
    run = 0;
    from += at.extent * lines.behind;
  }
}

// Calls body(from, to) for each element of groups begin to end - 1: `from` is the offset of its index, and `to` is the
// offset of the element that it selects. The calls for one line are in order.
template <class Body>
PLEXAURA_INLINE void for_each_place(const IndexedLines& at, std::int64_t begin, std::int64_t end,
                                    const Body& body) {
  const Lines& lines = at.lines;
  if (lines.behind == 1) {
    for (std::int64_t outer = begin; outer < end; ++outer)
      for (std::int64_t from = outer * lines.extent; from < (outer + 1) * lines.extent; ++from)
        body(from, outer * at.extent + at.indices[from]);
    return;
  }
  for (std::int64_t group = begin; group < end; ++group) {
    const std::int64_t outer = group / at.groups_of_row();
    const std::int64_t first = group % at.groups_of_row() * IndexedLines::width;
    const std::int64_t last = std::min(lines.behind, first + IndexedLines::width);
    for (std::int64_t i = 0; i < lines.extent; ++i)
      for (std::int64_t k = first; k < last; ++k) {
        const std::int64_t from = (outer * lines.extent + i) * lines.behind + k;
        body(from, (outer * at.extent + at.indices[from]) * lines.behind + k);
      }
  }
}

}  // namespace

// A negative index is a large unsigned number.
PLEXAURA_CLONES bool all_inside(const std::int64_t* indices, std::int64_t count, std::int64_t extent) {
  const auto limit = static_cast<std::uint64_t>(extent);
  std::int64_t outside = 0;
#pragma omp simd reduction(+ : outside)
  for (std::int64_t i = 0; i < count; ++i) outside += static_cast<std::uint64_t>(indices[i]) < limit ? 0 : 1;
  return outside == 0;
}

PLEXAURA_CLONES void add_row(const float* addends, float* sums, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sums[i] += addends[i];
}

PLEXAURA_CLONES void add_row(const double* addends, double* sums, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sums[i] += addends[i];
}

#define PLEXAURA_COPIES(Bits)                                                                                \
  PLEXAURA_CLONES void take_elements(const IndexedLines& at, const Bits* src, Bits* dst, std::int64_t begin, \
                                     std::int64_t end) {                                                     \
    take(at, src, dst, begin, end);                                                                          \
  }                                                                                                          \
  PLEXAURA_CLONES void put_elements(const IndexedLines& at, const Bits* updates, Bits* dst,                  \
                                    std::int64_t begin, std::int64_t end) {                                  \
    for_each_place(                                                                                          \
        at, begin, end, [&](std::int64_t from, std::int64_t to) __attribute__((always_inline)) {             \
          dst[to] = updates[from];                                                                           \
        });                                                                                                  \
  }
PLEXAURA_COPIES(std::uint8_t)
PLEXAURA_COPIES(std::uint16_t)
PLEXAURA_COPIES(std::uint32_t)
PLEXAURA_COPIES(std::uint64_t)
#undef PLEXAURA_COPIES

#define PLEXAURA_SUMS(T)                                                                                   \
  PLEXAURA_CLONES void add_elements(const IndexedLines& at, const T* addends, T* sums, std::int64_t begin, \
                                    std::int64_t end) {                                                    \
    for_each_place(                                                                                        \
        at, begin, end, [&](std::int64_t from, std::int64_t to) __attribute__((always_inline)) {           \
          sums[to] += addends[from];                                                                       \
        });                                                                                                \
  }
PLEXAURA_SUMS(float)
PLEXAURA_SUMS(double)
#undef PLEXAURA_SUMS

}  // namespace plexaura::fast
