#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/params/placement.h"
#include "distributed/choices/exchange_cost.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// What there is to choose from. The first of each is what a run takes that measures nothing.
struct ExchangeQuestion {
  std::vector<std::string> algorithms = {};  // that keep the order of sums
  std::vector<std::int64_t> bucket_bytes = {};
  bool overlaps = false;  // with the backward pass
  int threads = 0;        // of this rank, that compute beside an exchange which overlaps

  bool is_open() const { return algorithms.size() * bucket_bytes.size() > 1; }
};

// The sizes of buckets to choose from, beginning with this one.
std::vector<std::int64_t> bucket_sizes_from(std::int64_t first);

// Measures sums of all ranks, as `allreduce` makes them of gradients, and takes what exchange_cost.h says. What every bucket takes beside
// its bytes is measured with processors as busy as in a backward pass, where the exchange overlaps with that. Takes about a second, and over slow links that of
// some calls of 64 KiB. `placement`: of the gradients. The same on all ranks, which afterwards sum by the algorithm of the
// choice. Every call has the deadline of the communicator. Takes memory for the largest bucket, 64 MiB at most. Collective.
ExchangeWay choose_exchange(const ExchangeQuestion& question, const Placement& placement,
                            Communicator& ranks);

}  // namespace plexaura
