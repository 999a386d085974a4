#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"
#include "core/ops/lines.h"

namespace plexaura::fast {

// True if all indices are from 0 to extent - 1.
PLEXAURA_CLONED bool all_inside(const std::int64_t* indices, std::int64_t count, std::int64_t extent);

// sums[i] += addends[i]
PLEXAURA_CLONED void add_row(const float* addends, float* sums, std::int64_t count);
PLEXAURA_CLONED void add_row(const double* addends, double* sums, std::int64_t count);

// `indices` are viewed as lines along an axis. Each selects an element of another value, which has `extent` elements
// along the axis.
struct IndexedLines {
  Lines lines;
  std::int64_t extent;
  const std::int64_t* indices;

  // Neighbouring lines are computed in groups of this width.
  static constexpr std::int64_t width = 64;
  std::int64_t groups_of_row() const { return (lines.behind + width - 1) / width; }
  std::int64_t groups() const { return lines.before * groups_of_row(); }
};

// Sets elements begin to end - 1 of `dst` to the elements of `src` that are selected.
PLEXAURA_CLONED void take_elements(const IndexedLines& at, const std::uint8_t* src, std::uint8_t* dst,
                                   std::int64_t begin, std::int64_t end);
PLEXAURA_CLONED void take_elements(const IndexedLines& at, const std::uint16_t* src, std::uint16_t* dst,
                                   std::int64_t begin, std::int64_t end);
PLEXAURA_CLONED void take_elements(const IndexedLines& at, const std::uint32_t* src, std::uint32_t* dst,
                                   std::int64_t begin, std::int64_t end);
PLEXAURA_CLONED void take_elements(const IndexedLines& at, const std::uint64_t* src, std::uint64_t* dst,
                                   std::int64_t begin, std::int64_t end);

// Sets the selected elements of `dst` to the elements of `updates`, for groups begin to end - 1. If a line
// selects an element several times, its last update stays.
PLEXAURA_CLONED void put_elements(const IndexedLines& at, const std::uint8_t* updates, std::uint8_t* dst,
                                  std::int64_t begin, std::int64_t end);
PLEXAURA_CLONED void put_elements(const IndexedLines& at, const std::uint16_t* updates, std::uint16_t* dst,
                                  std::int64_t begin, std::int64_t end);
PLEXAURA_CLONED void put_elements(const IndexedLines& at, const std::uint32_t* updates, std::uint32_t* dst,
                                  std::int64_t begin, std::int64_t end);
PLEXAURA_CLONED void put_elements(const IndexedLines& at, const std::uint64_t* updates, std::uint64_t* dst,
                                  std::int64_t begin, std::int64_t end);

// Adds the elements of `addends` to the selected elements of `sums`, for groups begin to end - 1, in the order of a line.
PLEXAURA_CLONED void add_elements(const IndexedLines& at, const float* addends, float* sums,
                                  std::int64_t begin, std::int64_t end);
PLEXAURA_CLONED void add_elements(const IndexedLines& at, const double* addends, double* sums,
                                  std::int64_t begin, std::int64_t end);

}  // namespace plexaura::fast
