#pragma once

#include "distributed/communicator/communicator.h"
#include "tests/distributed/programs/training/small_run.h"

namespace plexaura::testing {

// Checks each strategy of `summing_strategies` in float64 and float32: the ranks end with the weights of one
// rank that trains by itself with the same global batches. Every run, strategy, size of buckets and rank
// gives the same bits. `allreduce` is also checked with micro-batches. Collective. Throws InternalError that
// names the difference.
void check_equivalence(Communicator& ranks, const SmallRunOptions& options);

}  // namespace plexaura::testing
