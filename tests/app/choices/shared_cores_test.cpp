#include "app/choices/shared_cores.h"

#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

#include "distributed/communicator/group_communicator.h"
#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing::shared_cores_test {

namespace {

using Cores = std::vector<int>;

// Makes ranks of one machine with four cores, each with the cores that it may use.
std::vector<RankCores> on_one(const std::vector<Cores>& cores, int threads = 1) {
  std::vector<RankCores> ranks;
  for (const Cores& own : cores)
    ranks.push_back({.rank = static_cast<int>(ranks.size()),
                     .node = 0,
                     .host = "h0",
                     .threads = threads,
                     .cores_of_machine = 4,
                     .cores = own});
  return ranks;
}

}  // namespace

TEST_CASE("shared cores: nothing is said where each thread has a core") {
  CHECK(remark_on_shared_cores(on_one({{0}, {1}, {2}, {3}})).empty());
  CHECK(remark_on_shared_cores(on_one({{0, 1}, {2, 3}}, 2)).empty());
  CHECK(remark_on_shared_cores(on_one({{0, 1, 2, 3}, {0, 1, 2, 3}}, 2)).empty());
  CHECK(remark_on_shared_cores(on_one({{0}}, 3)).empty());        // a single rank shares no cores with others
  CHECK(remark_on_shared_cores(on_one({{0}, {1}}, 2)).empty());   // each rank slows down only itself
  CHECK(remark_on_shared_cores(on_one({{0}, {0}, {}})).empty());  // nothing is known about the third rank
  std::vector<RankCores> apart = on_one({{0}, {0}});
  apart[1].node = 1;
  CHECK(remark_on_shared_cores(apart).empty());
}

TEST_CASE("shared cores: ranks that are bound to the same ones are told to unbind") {
  CHECK(remark_on_shared_cores(on_one({{0}, {1, 2, 3}, {0}})) ==
        "ranks 0 and 2 have 2 threads on one core of h0, and slow each other down; give them more (mpirun "
        "--bind-to none, srun --cpus-per-task), or start fewer ranks");
  CHECK(remark_on_shared_cores(on_one({{0, 1}, {1, 2}}, 2)) ==
        "ranks 0 and 1 have 4 threads on 3 cores of h0, and slow each other down; give them more (mpirun "
        "--bind-to none, srun --cpus-per-task), or start fewer threads (OMP_NUM_THREADS)");
}

TEST_CASE("shared cores: a machine that is too small has no more to give") {
  CHECK(
      remark_on_shared_cores(on_one(std::vector<Cores>(5, {0, 1, 2, 3}))) ==
      "ranks 0, 1, 2, 3 and 4 have 5 threads on 4 cores of h0, and slow each other down; start fewer ranks");
}

namespace {

// Returns the remark that each of three ranks gets. Ranks with the numbers 2 and 3 share a host.
std::vector<std::string> told(bool compute_on_cpu) {
  std::vector<std::string> said(3);
  ThreadNetwork network(3);
  const auto ends = endings(3, [&](int rank) {
    const std::string host = rank == 0 ? "a" : "b";
    GroupCommunicator all(network.transport(rank), {.shared_memory = false}, nullptr,
                          {host, rank + 1, "unknown", host});
    said[static_cast<std::size_t>(rank)] = remark_on_shared_cores(all, rank + 1, compute_on_cpu);
    all.leave(0);
  });
  CHECK(ends == std::vector<std::string>(3, "fine"));
  return said;
}

}  // namespace

TEST_CASE("shared cores: ranks tell each other, by node") {
  const std::vector<std::string> said = told(true);
  CHECK(said == std::vector<std::string>(3, said[0]));
  // depends on the cores of this machine
  CHECK((said[0].empty() || said[0].starts_with("ranks 2 and 3 have ")));
}

TEST_CASE("shared cores: nothing is said of ranks that compute on a device") {
  CHECK(told(false) == std::vector<std::string>(3));
}

}  // namespace plexaura::testing::shared_cores_test
