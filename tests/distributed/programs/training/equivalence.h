#pragma once

#include "distributed/communicator/communicator.h"
#include "tests/distributed/programs/training/small_run.h"

namespace plexaura::testing {

// All strategies, in float64 and float32: the ranks end with the weights of one rank that trains by itself
// with the same global batches, with micro-batches too; and with the same bits in every run, with every
// strategy and size of buckets, on every rank. Throws InternalError that names what differs. Collective.
void check_equivalence(Communicator& ranks, const SmallRunOptions& options);

}  // namespace plexaura::testing
