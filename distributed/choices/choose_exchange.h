#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/params/placement.h"
#include "distributed/choices/cost_model.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// The algorithms and the sizes of buckets to choose from. A run that measures nothing takes the first
// algorithm and the first size.
struct ExchangeQuestion {
  std::vector<std::string> algorithms = {};  // names of algorithms that keep the order of sums
  std::vector<std::int64_t> bucket_bytes = {};
  bool overlaps = false;  // true if the exchange overlaps with the backward pass
  int threads = 0;        // number of this rank's threads that compute during an overlapped exchange

  // Returns each algorithm with each size, without estimates.
  std::vector<ExchangeWay> ways() const;
};

// Returns the sizes of buckets to choose from; the first one is `first`.
std::vector<std::int64_t> bucket_sizes_from(std::int64_t first);

// Measures sums of all ranks, as `allreduce` makes them of gradients, and chooses by the estimates of
// cost_model.h. If the exchange overlaps with the backward pass, the latency is measured while the processors
// compute. It takes about a second, and over slow links the time of some calls of 64 KiB. `placement` is that
// of the gradients, of which there is one at least. The choice is the same on all ranks. Afterwards `ranks` sums by the chosen algorithm.
// Every call has the deadline of the communicator. Needs memory for the largest bucket, at most 64 MiB.
// Collective.
ExchangeWay choose_exchange(const ExchangeQuestion& question, const Placement& placement,
                            Communicator& ranks);

}  // namespace plexaura
