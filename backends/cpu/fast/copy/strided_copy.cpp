#include "backends/cpu/fast/copy/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/parallel.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_element = 0.3;
// The extents of a tile. One thread copies a tile.
constexpr std::int64_t tile_rows = 64;
constexpr std::int64_t tile_columns = 8192;
constexpr std::int64_t cache_line = 64;    // bytes
constexpr std::int64_t shortest_run = 16;  // elements; shorter runs are copied without a call

std::int64_t pieces_of(std::int64_t extent, std::int64_t piece) { return (extent + piece - 1) / piece; }

// Sorts the loops by the destination, and joins two if both arrays continue in the outer loop where the inner one
// ends.
std::vector<CopyLoop> joined(std::vector<CopyLoop> loops) {
  std::erase_if(loops, [](const CopyLoop& loop) { return loop.extent == 1; });
  std::ranges::stable_sort(loops, std::ranges::greater{},
                           [](const CopyLoop& loop) { return std::abs(loop.to); });
  for (std::size_t inner = loops.size(); inner-- > 1;) {
    CopyLoop& outer = loops[inner - 1];
    const CopyLoop& last = loops[inner];
    if (outer.from != last.from * last.extent || outer.to != last.to * last.extent) continue;
    outer = {outer.extent * last.extent, last.from, last.to};
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(inner));
  }
  return loops;
}

template <class T>
void copy_run(const T* src, T* dst, std::int64_t count, const CopyLoop& columns) {
  if (columns.from == 1 && columns.to == 1) {
    if (count >= shortest_run)
      std::memcpy(dst, src, static_cast<std::size_t>(count) * sizeof(T));
    else
      for (std::int64_t i = 0; i < count; ++i) dst[i] = src[i];
  } else if (columns.from == -1 && columns.to == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) dst[i] = src[-i];
  } else {
    for (std::int64_t i = 0; i < count; ++i) dst[i * columns.to] = src[i * columns.from];
  }
}

// Swaps the axes of a square whose rows are `from` elements apart in the source and `to` in the destination. The
// compiler makes vectors of it, since it knows the extents.
template <class T, std::int64_t side>
PLEXAURA_INLINE void transpose_square(const T* src, std::int64_t from, T* dst, std::int64_t to) {
  T square[side][side];
  for (std::int64_t i = 0; i < side; ++i)
    for (std::int64_t j = 0; j < side; ++j) square[j][i] = src[i * from + j];
  for (std::int64_t j = 0; j < side; ++j)
    for (std::int64_t i = 0; i < side; ++i) dst[j * to + i] = square[j][i];
}

// Copies rows of neighbours in the source to columns, each of which is a run of neighbours in the destination. It
// takes as many columns at once as fill a cache line of the destination.
template <class T>
void transpose(const T* src, T* dst, std::int64_t rows, std::int64_t columns, std::int64_t from,
               std::int64_t to) {
  constexpr std::int64_t side =
      sizeof(T) == 8 ? 2 : 4;  // two elements of 8 bytes fill a vector of every processor
  constexpr std::int64_t group = cache_line / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t first = 0; first < columns; first += group)
    for (std::int64_t row = 0; row < rows; row += side)
      for (std::int64_t column = first; column < std::min(columns, first + group); column += side) {
        const T* corner = src + column * from + row;
        T* target = dst + row * to + column;
        if (row + side <= rows && column + side <= columns) {
          transpose_square<T, side>(corner, from, target, to);
          continue;
        }
        for (std::int64_t i = 0; i < std::min(side, rows - row); ++i)
          for (std::int64_t j = 0; j < std::min(side, columns - column); ++j)
            target[i * to + j] = corner[j * from + i];
      }
}

template <class T>
void copy_tile(const std::byte* src_bytes, std::byte* dst_bytes, const CopyLoop& rows,
               const CopyLoop& columns) {
  const T* src = reinterpret_cast<const T*>(src_bytes);
  T* dst = reinterpret_cast<T*>(dst_bytes);
  if (rows.from == 1 && columns.from != 1 && columns.to == 1)
    return transpose(src, dst, rows.extent, columns.extent, columns.from, rows.to);
  for (std::int64_t row = 0; row < rows.extent; ++row)
    copy_run(src + row * rows.from, dst + row * rows.to, columns.extent, columns);
}

}  // namespace

StridedCopy::StridedCopy(std::vector<CopyLoop> loops, std::size_t element_bytes)
    : outer_(joined(std::move(loops))), element_bytes_(element_bytes) {
  if (outer_.empty()) return;
  columns_ = outer_.back();
  outer_.pop_back();
  if (outer_.empty()) return;
  const auto neighbours = std::ranges::find_if(outer_, [](const CopyLoop& loop) { return loop.from == 1; });
  const auto chosen = neighbours == outer_.end() ? outer_.end() - 1 : neighbours;
  rows_ = *chosen;
  outer_.erase(chosen);
}

std::int64_t StridedCopy::elements() const {
  std::int64_t count = rows_.extent * columns_.extent;
  for (const CopyLoop& loop : outer_) count *= loop.extent;
  return count;
}

void StridedCopy::run_tile(std::int64_t tile, const std::byte* src, std::byte* dst) const {
  std::int64_t from = 0;
  std::int64_t to = 0;
  const auto next_index = [&](std::int64_t extent) {
    const std::int64_t index = tile % extent;
    tile /= extent;
    return index;
  };
  const auto piece_of = [&](const CopyLoop& loop, std::int64_t piece) {
    const std::int64_t first = next_index(pieces_of(loop.extent, piece)) * piece;
    from += first * loop.from;
    to += first * loop.to;
    return CopyLoop{std::min(piece, loop.extent - first), loop.from, loop.to};
  };
  const CopyLoop columns = piece_of(columns_, tile_columns);
  const CopyLoop rows = piece_of(rows_, tile_rows);
  for (std::size_t loop = outer_.size(); loop-- > 0;) {
    const std::int64_t index = next_index(outer_[loop].extent);
    from += index * outer_[loop].from;
    to += index * outer_[loop].to;
  }
  const auto bytes = static_cast<std::int64_t>(element_bytes_);
  const auto copy = element_bytes_ == 1   ? copy_tile<std::uint8_t>
                    : element_bytes_ == 2 ? copy_tile<std::uint16_t>
                    : element_bytes_ == 4 ? copy_tile<std::uint32_t>
                                          : copy_tile<std::uint64_t>;
  copy(src + from * bytes, dst + to * bytes, rows, columns);
}

void StridedCopy::run(const std::byte* src, std::byte* dst) const {
  const std::int64_t count = elements();
  if (count == 0) return;
  std::int64_t tiles = pieces_of(columns_.extent, tile_columns) * pieces_of(rows_.extent, tile_rows);
  for (const CopyLoop& loop : outer_) tiles *= loop.extent;
  const double cost = nanoseconds_per_element * static_cast<double>(count) / static_cast<double>(tiles);
  parallel_pieces(tiles, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) run_tile(tile, src, dst);
  });
}

}  // namespace plexaura::fast
