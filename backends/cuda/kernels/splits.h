#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cuda/kernels/call.h"

// Few sums of many elements are cut into splits, each of which a block adds up by itself; the block that comes last adds these
// up, in an order that does not depend on which it is.

namespace plexaura::cuda {

// Of a launch. What has fewer is cut.
constexpr std::int64_t enough_blocks = 2 * most_arrivals;
constexpr std::int64_t rounds_of_split = 16;  // of its block, so that a split is worth its while

// Of each of `sums` sums of `count` elements, of which a block takes `at_once`. Where it is more than 1, there are enough_blocks
// splits at most, and most_arrivals sums.
inline std::int64_t splits_of(std::int64_t sums, std::int64_t count, std::int64_t at_once) {
  const std::int64_t most = std::max<std::int64_t>(enough_blocks / std::max<std::int64_t>(sums, 1), 1);
  return std::clamp<std::int64_t>(count / (rounds_of_split * at_once), 1, most);
}

// Where a split begins, and the one before ends.
PLEXAURA_HD inline std::int64_t first_of_split(std::int64_t count, std::int64_t split, std::int64_t splits) {
  return count * split / splits;
}

}  // namespace plexaura::cuda
