#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace plexaura::fast {

enum class ReduceRule { sum, mean, max, min };

// The most columns that one call of ReduceLoops::columns reduces.
constexpr std::int64_t most_columns = 64;

// The loops of a reduction of one dtype. They reduce to totals: double for sums of floats, integers modulo 2^64 for
// sums of integers, and elements for extremes. If an element is NaN, so is the extreme. Among zeros the first one that
// a loop reads is the extreme.
struct ReduceLoops {
  std::size_t bytes_of_total;
  // Sets each total to the result of no elements.
  void (*start)(std::byte* totals, std::int64_t count);
  // Reduces `count` neighbouring elements into one total.
  void (*run)(const std::byte* x, std::int64_t count, std::byte* total);
  // Reduces x[row * stride + c] of all rows into totals[c], for `columns` <= most_columns. The stride is in
  // elements. Rows of 16 float32 without a gap are added up in float, 32 at a time.
  void (*columns)(const std::byte* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                  std::byte* totals);
  // Reduces totals into others, one by one.
  void (*combine)(const std::byte* from, std::byte* totals, std::int64_t count);
  // Stores a total, divided by `count` for a mean, as element `place` of the result.
  void (*store)(const std::byte* total, double count, std::byte* result, std::int64_t place);
};

// Returns the loops of a reduction, or null for a dtype without such loops.
const ReduceLoops* find_reduction(ReduceRule rule, DType dtype);

}  // namespace plexaura::fast
