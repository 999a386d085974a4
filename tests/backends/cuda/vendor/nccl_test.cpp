// Tests the calls to NCCL without a GPU, with a fake library.

#include <atomic>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <thread>

#include "backends/cuda/vendor/sums.h"
#include "tests/support/error_text.h"
#include "tests/support/fake_nccl/fake_nccl.h"

namespace plexaura::testing::nccl_test {

namespace {

using cuda::vendor::join;
using cuda::vendor::Sums;

// Returns the fake library in its initial state.
FakeNccl& fresh() {
  static auto* const get =
      reinterpret_cast<FakeNccl* (*)()>(dlsym(dlopen(PLEXAURA_NCCL, RTLD_NOW), "fake_nccl"));
  return *get() = {};
}

std::unique_ptr<Sums> join_now(double deadline_seconds = 10) {
  return join({cuda::vendor::make_token(), 2, 3}, deadline_seconds);
}

}  // namespace

TEST_CASE("NCCL: a rank joins by the token that one of them has made, and waits for the library") {
  FakeNccl& fake = fresh();
  CHECK(cuda::vendor::sums_version() == "NCCL 2.28.9");
  fake.naps = 3;
  const auto sums = join_now();
  CHECK(fake.naps == 0);
  CHECK(fake.rank == 2);
  CHECK(fake.ranks == 3);
  CHECK(fake.blocking == 0);
  for (std::size_t i = 0; i < sizeof fake.joined.internal; ++i)
    CHECK(fake.joined.internal[i] == static_cast<char>(2 * i + 1));
}

TEST_CASE("NCCL: a rank that waits too long for the others gives up") {
  FakeNccl& fake = fresh();
  fake.state = ncclInProgress;
  CHECK(device_error([] { join_now(0.05); }) == "NCCL: ncclCommInitRankConfig was not done within 0.05 s");
  CHECK(fake.aborts == 1);
}

TEST_CASE("NCCL: a sum is enqueued when the call is done") {
  FakeNccl& fake = fresh();
  const auto sums = join_now();
  for (const auto& [dtype, type] : {std::pair{DType::float64, ncclFloat64},
                                    {DType::float32, ncclFloat32},
                                    {DType::float16, ncclFloat16},
                                    {DType::bfloat16, ncclBfloat16}}) {
    fake.naps = 2;
    sums->sum(nullptr, dtype, nullptr, 1);
    CHECK(fake.naps == 0);
    CHECK(fake.type == type);
  }
  CHECK(fake.sums == 4);
  fake.answer = ncclInvalidArgument;
  CHECK(device_error([&] { sums->sum(nullptr, DType::float32, nullptr, 1); }) ==
        "NCCL: ncclAllReduce failed: remote process exited");
}

TEST_CASE("NCCL: what the library meets later is told, and after that it is given up once") {
  FakeNccl& fake = fresh();
  {
    const auto sums = join_now();
    CHECK(sums->failure().empty());
    fake.state = ncclRemoteError;
    CHECK(sums->failure() == "NCCL: remote process exited: rank 1 is gone");
    sums->give_up();
    sums->give_up();
    CHECK(sums->failure().empty());
    CHECK(device_error([&] { sums->sum(nullptr, DType::float32, nullptr, 1); }) ==
          "NCCL: the sums over ranks were given up");
  }
  CHECK(fake.aborts == 1);
  CHECK(fake.sums == 0);
}

TEST_CASE("NCCL: a rank whose sums are done leaves in order, and aborts nothing") {
  FakeNccl& fake = fresh();
  {
    const auto sums = join_now();
    sums->sum(nullptr, DType::float32, nullptr, 1);
    sums->end();
    CHECK(fake.finalized == 1);
    CHECK(fake.destroyed == 1);
    sums->end();
    CHECK(sums->failure().empty());
    CHECK(device_error([&] { sums->sum(nullptr, DType::float32, nullptr, 1); }) ==
          "NCCL: the sums over ranks were given up");
  }
  CHECK(fake.finalized == 1);
  CHECK(fake.destroyed == 1);
  CHECK(fake.aborts == 0);
}

TEST_CASE("NCCL: a rank that waits too long for the others at the end gives up") {
  FakeNccl& fake = fresh();
  const auto sums = join_now(0.05);
  fake.naps_of_finalize = 1'000'000'000;
  sums->end();
  CHECK(fake.finalized == 1);
  CHECK(fake.destroyed == 0);
  CHECK(fake.aborts == 1);
}

TEST_CASE("NCCL: giving up ends although the library does not return from it") {
  FakeNccl& fake = fresh();
  const auto sums = join_now(0.05);
  std::atomic_ref(fake.abort_hangs).store(true);
  sums->give_up();
  CHECK_FALSE(std::atomic_ref(fake.abort_returned).load());
  std::atomic_ref(fake.abort_hangs).store(false);
  while (!std::atomic_ref(fake.abort_returned).load()) std::this_thread::yield();
}

}  // namespace plexaura::testing::nccl_test
