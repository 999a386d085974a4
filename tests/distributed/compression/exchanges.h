#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "distributed/compression/compression.h"

namespace plexaura::testing {

using Floats = std::vector<float>;

// The hosts of a test's ranks.
struct Places {
  // Puts all ranks on one host without shared memory, so that they exchange everything in messages.
  Places(int ranks) : hosts(static_cast<std::size_t>(ranks), "h") {}
  // Puts each rank on the named host. Ranks of a host share memory.
  Places(std::vector<std::string> names) : hosts(std::move(names)), share_memory(true) {}

  std::vector<std::string> hosts;
  bool share_memory = false;
};

// The sums that one rank gets in a step, and what it owes after the step.
struct Exchanged {
  Floats sums;
  Floats owed;
};

// Exchanges one bucket in several steps, on ranks that are threads. `gradient(rank, step)` is added to what
// the rank owes. `shapes` are the parameters of the bucket; by default it is one vector. The exchange begins
// with the given state. Returns the result of each rank in each step: [step][rank]. Throws InternalError if a
// rank fails.
std::vector<std::vector<Exchanged>> exchange(const CompressionOptions& options, const Places& places,
                                             int steps,
                                             const std::function<Floats(int rank, int step)>& gradient,
                                             const std::vector<std::vector<std::int64_t>>& shapes = {},
                                             const std::vector<StrategyState>& state = {});

// Returns the bytes that rank 0 sends to rank 1 in one exchange of a parameter with this shape.
std::size_t bytes_sent(const CompressionOptions& options, int ranks, const std::vector<std::int64_t>& shape);

}  // namespace plexaura::testing
