#pragma once

#include <nccl.h>

namespace plexaura::testing {

// NCCL's functions without a GPU, as far as backends/cuda/vendor/nccl.cpp calls them. A test sets their
// results.
struct FakeNccl {
  int naps = 0;                          // number of queries that say "in progress" for each call
  ncclResult_t state = ncclSuccess;      // the state after that
  ncclResult_t answer = ncclInProgress;  // the result of the calls themselves
  ncclUniqueId joined = {};
  int rank = -1;
  int ranks = 0;
  int blocking = -1;
  int sums = 0;
  ncclDataType_t type = ncclInt8;  // of the last call
  int aborts = 0;
  // Other threads read and write these two, too.
  bool abort_hangs = false;
  bool abort_returned = false;
  int naps_of_finalize = 3;
  int finalized = 0;
  int destroyed = 0;  // when that was done
};

}  // namespace plexaura::testing

extern "C" plexaura::testing::FakeNccl* fake_nccl();
