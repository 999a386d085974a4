#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "distributed/compression/compression.h"

namespace plexaura::testing {

using Floats = std::vector<float>;

// Where the ranks of a test run.
struct Places {
  // On one host, without shared memory, so that all that they exchange travels in messages.
  Places(int ranks) : hosts(static_cast<std::size_t>(ranks), "h") {}
  // The ranks of a host share memory.
  Places(std::vector<std::string> names) : hosts(std::move(names)), share_memory(true) {}

  std::vector<std::string> hosts;
  bool share_memory = false;
};

// What one rank brings to a step, and has behind it.
struct Exchanged {
  Floats sums;
  Floats owed;
};

// Exchanges one bucket step after step, on ranks that are threads. `gradient(rank, step)` is what a rank adds to what it
// owes. The bucket has the parameters of these shapes; by default it is a vector. It goes on from this state. Gives what each rank has in
// each step: [step][rank]. InternalError where a rank fails.
std::vector<std::vector<Exchanged>> exchange(const CompressionOptions& options, const Places& places,
                                             int steps,
                                             const std::function<Floats(int rank, int step)>& gradient,
                                             const std::vector<std::vector<std::int64_t>>& shapes = {},
                                             const std::vector<StrategyState>& state = {});

// Bytes that rank 0 sends to rank 1 in one exchange of a parameter of this shape.
std::size_t bytes_sent(const CompressionOptions& options, int ranks, const std::vector<std::int64_t>& shape);

}  // namespace plexaura::testing
