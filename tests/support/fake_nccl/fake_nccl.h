#pragma once

#include <nccl.h>

namespace plexaura::testing {

// NCCL's functions without a GPU, in a library of the tests, as far as backends/cuda/vendor/nccl.cpp calls them. A test says what
// they answer.
struct FakeNccl {
  int naps = 0;                          // so often a call is still in progress when it is asked for
  ncclResult_t state = ncclSuccess;      // what it is then
  ncclResult_t answer = ncclInProgress;  // of the calls themselves
  ncclUniqueId joined = {};
  int rank = -1;
  int ranks = 0;
  int blocking = -1;
  int sums = 0;
  ncclDataType_t type = ncclInt8;  // of the last one
  int aborts = 0;
  // Of these two, other threads know, too.
  bool abort_hangs = false;
  bool abort_returned = false;
  int naps_of_finalize = 3;
  int finalized = 0;
  int destroyed = 0;  // when that was done
};

}  // namespace plexaura::testing

extern "C" plexaura::testing::FakeNccl* fake_nccl();
