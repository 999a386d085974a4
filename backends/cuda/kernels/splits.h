#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cuda/kernels/call.h"

// Sums that are divided into splits. If there are few sums of many elements, each sum is divided. One block
// adds up one split, and the last block to finish adds up the splits, in an order that does not depend on
// which block that is.

namespace plexaura::cuda {

// The number of blocks below which a launch is divided into splits.
constexpr std::int64_t enough_blocks = 2 * most_arrivals;
// Least number of rounds in a split, so that dividing is worth the effort.
constexpr std::int64_t rounds_of_split = 16;

// Returns the number of splits for each of `sums` sums of `count` elements, if a block adds up `at_once`
// elements in a round, and a split has at least `rounds` rounds. If it is more than 1, there are at most
// enough_blocks splits in all, and at most most_arrivals sums.
inline std::int64_t splits_of(std::int64_t sums, std::int64_t count, std::int64_t at_once,
                              std::int64_t rounds = rounds_of_split) {
  const std::int64_t most = std::max<std::int64_t>(enough_blocks / std::max<std::int64_t>(sums, 1), 1);
  return std::clamp<std::int64_t>(count / (rounds * at_once), 1, most);
}

// Returns the first element of a split, which is also the end of the split before.
PLEXAURA_HD inline std::int64_t first_of_split(std::int64_t count, std::int64_t split, std::int64_t splits) {
  return count * split / splits;
}

}  // namespace plexaura::cuda
