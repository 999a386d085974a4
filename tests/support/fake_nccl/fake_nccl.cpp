#include "tests/support/fake_nccl/fake_nccl.h"

#include <atomic>
#include <cstddef>
#include <thread>

#define EXPORTED __attribute__((visibility("default")))

extern "C" {

EXPORTED plexaura::testing::FakeNccl* fake_nccl() {
  static plexaura::testing::FakeNccl state;
  return &state;
}

EXPORTED ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

EXPORTED ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  for (std::size_t i = 0; i < sizeof id->internal; ++i) id->internal[i] = static_cast<char>(2 * i + 1);
  return ncclSuccess;
}

EXPORTED ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                             ncclConfig_t* config) {
  plexaura::testing::FakeNccl& fake = *fake_nccl();
  *comm = reinterpret_cast<ncclComm_t>(&fake);
  fake.joined = id;
  fake.rank = rank;
  fake.ranks = ranks;
  fake.blocking = config->blocking;
  return fake.answer;
}

EXPORTED ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  plexaura::testing::FakeNccl& fake = *fake_nccl();
  *state = fake.naps > 0 ? ncclInProgress : fake.state;
  if (fake.naps > 0) --fake.naps;
  return ncclSuccess;
}

EXPORTED ncclResult_t ncclAllReduce(const void*, void*, std::size_t, ncclDataType_t type, ncclRedOp_t,
                                    ncclComm_t, cudaStream_t) {
  ++fake_nccl()->sums;
  fake_nccl()->type = type;
  return fake_nccl()->answer;
}

EXPORTED ncclResult_t ncclCommAbort(ncclComm_t) {
  ++fake_nccl()->aborts;
  while (std::atomic_ref(fake_nccl()->abort_hangs).load()) std::this_thread::yield();
  std::atomic_ref(fake_nccl()->abort_returned).store(true);
  return ncclSuccess;
}

EXPORTED ncclResult_t ncclCommFinalize(ncclComm_t) {
  plexaura::testing::FakeNccl& fake = *fake_nccl();
  ++fake.finalized;
  fake.naps = fake.naps_of_finalize;
  return ncclInProgress;
}

EXPORTED ncclResult_t ncclCommDestroy(ncclComm_t) {
  plexaura::testing::FakeNccl& fake = *fake_nccl();
  if (fake.finalized > 0 && fake.naps == 0) ++fake.destroyed;
  return ncclSuccess;
}

EXPORTED const char* ncclGetErrorString(ncclResult_t) { return "remote process exited"; }
EXPORTED const char* ncclGetLastError(ncclComm_t) { return "rank 1 is gone"; }

}  // extern "C"
