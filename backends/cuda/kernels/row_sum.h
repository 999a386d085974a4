#pragma once

#include <algorithm>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/joins.h"

namespace plexaura::cuda {

// The sum of one number for each row of a tensor. The block that computes a row writes its number to `rows`.
// The last block to finish adds all of them up in the order of sum_all(), so that the bits do not depend on
// which block is last.
struct RowSum {
  Global<double> rows;
  Global<std::uint32_t> arrived;  // one counter, which is 0 before and after the kernel

  // Called by each block after it has written the numbers of its rows in an earlier phase. finish(sum) runs
  // in one thread of the last block.
  template <class Parts, class Last, class Finish>
  PLEXAURA_DEVICE void add_up(Block& block, Parts& parts, Last& last, const Finish& finish) const {
    block.each_thread([&](int thread) {
      if (thread == 0) last[0] = arrive(arrived.shared(0), static_cast<std::uint32_t>(block.blocks()));
    });
    if (!last[0]) return;
    sum_all<double>(block, parts, rows.count(), [&](std::int64_t row) { return rows[row]; });
    block.each_thread([&](int thread) {
      if (thread == 0) finish(static_cast<double>(parts[0]));
    });
  }
};

inline std::size_t row_sum_workspace(std::int64_t rows) {
  return static_cast<std::size_t>(rows) * sizeof(double);
}

inline RowSum row_sum_of(const Call& call, std::int64_t rows) {
  return {{call.workspace, rows}, {call.arrivals, 1}};
}

// Returns one block for each row, up to the limit of blocks_of_sums(); at least one, which writes the sum if
// there are no rows.
inline std::int64_t blocks_of_rows(std::int64_t rows) {
  return std::max<std::int64_t>(blocks_of_sums(rows), 1);
}

}  // namespace plexaura::cuda
