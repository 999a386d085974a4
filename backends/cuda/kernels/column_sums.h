#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cuda/kernels/call.h"

namespace plexaura::cuda {

// Two sums over the rows of each column of a matrix [rows, columns], for images that lie channels last. Neighbouring
// threads read neighbouring columns. The rows are cut into `splits`, each of which a block sums up by itself, and whoever
// needs the whole sum adds these up in their order.
struct Columns {
  static constexpr int at_once = 32;  // columns that one block sums up
  static constexpr int rows_at_once = threads / at_once;

  Columns(std::int64_t rows, std::int64_t columns) : rows(rows), columns(columns) {
    constexpr std::int64_t worthwhile = 16 * rows_at_once;  // rows of a split
    constexpr std::int64_t enough_blocks = 1024;
    const std::int64_t most = std::max<std::int64_t>(enough_blocks / std::max<std::int64_t>(tiles(), 1), 1);
    splits = std::clamp<std::int64_t>(rows / worthwhile, 1, most);
  }

  PLEXAURA_HD std::int64_t tiles() const { return (columns + at_once - 1) / at_once; }
  PLEXAURA_HD std::int64_t first_row(std::int64_t split) const { return rows * split / splits; }
  std::size_t workspace() const { return static_cast<std::size_t>(2 * splits * columns) * sizeof(double); }

  std::int64_t rows;
  std::int64_t columns;
  std::int64_t splits;
};

struct TwoSums {
  double first = 0;
  double second = 0;

  PLEXAURA_DEVICE TwoSums& operator+=(const TwoSums& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
};

// terms(place, column) gives the two terms of the element at a place.
template <class Terms>
struct ColumnSumsKernel {
  Terms terms;
  Columns of;
  Global<double> sums;  // [splits, 2, columns]

  PLEXAURA_DEVICE TwoSums sum_of_rows(std::int64_t split, int first, std::int64_t column) const {
    TwoSums sum;
    const std::int64_t end = of.first_row(split + 1);
    for (std::int64_t row = of.first_row(split) + first; row < end; row += Columns::rows_at_once)
      sum += terms(row * of.columns + column, column);
    return sum;
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, double, firsts, threads);
    PLEXAURA_SHARED(block, double, seconds, threads);
    for (std::int64_t item = block.index(); item < of.tiles() * of.splits; item += block.blocks()) {
      const std::int64_t split = item / of.tiles();
      const std::int64_t first_column = item % of.tiles() * Columns::at_once;
      block.each_thread([&](int thread) {
        const std::int64_t column = first_column + thread % Columns::at_once;
        TwoSums sum;
        if (column < of.columns) sum = sum_of_rows(split, thread / Columns::at_once, column);
        firsts[thread] = sum.first;
        seconds[thread] = sum.second;
      });
      block.each_thread([&](int thread) {
        const std::int64_t column = first_column + thread;
        if (thread >= Columns::at_once || column >= of.columns) return;
        TwoSums sum;
        for (int i = thread; i < threads; i += Columns::at_once)
          sum += {static_cast<double>(firsts[i]), static_cast<double>(seconds[i])};
        sums[2 * split * of.columns + column] = sum.first;
        sums[(2 * split + 1) * of.columns + column] = sum.second;
      });
    }
  }
};

// The sums of a column over all rows.
PLEXAURA_DEVICE inline TwoSums total(const Columns& of, const Global<double>& sums, std::int64_t column) {
  TwoSums total;
  for (std::int64_t split = 0; split < of.splits; ++split)
    total += {sums[2 * split * of.columns + column], sums[(2 * split + 1) * of.columns + column]};
  return total;
}

// Enqueues the kernel, and gives the place of its sums, which is the call's workspace.
template <class Terms>
Global<double> enqueue_column_sums(const Call& call, const Columns& of, const Terms& terms) {
  const Global<double> sums(call.workspace, 2 * of.splits * of.columns);
  enqueue(call, blocks_of_sums(of.tiles() * of.splits), ColumnSumsKernel<Terms>{terms, of, sums});
  return sums;
}

}  // namespace plexaura::cuda
