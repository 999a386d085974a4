#include "distributed/communicator/roles.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "distributed/communicator/group_communicator.h"
#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing::roles_test {

namespace {

constexpr int rank_count = 3;

void require(bool holds, const char* what) {
  if (!holds) throw InternalError(what);
}

// Runs the body on ranks of which the last `spares` are spares.
std::vector<std::string> with_roles(int spares,
                                    const std::function<void(GroupCommunicator&, const Roles&)>& body) {
  ThreadNetwork network(rank_count);
  return endings(rank_count, [&](int rank) {
    GroupCommunicator all(network.transport(rank), {.shared_memory = false});
    const Roles roles(all, nullptr, rank >= rank_count - spares);
    body(all, roles);
    all.leave(0);
  });
}

}  // namespace

TEST_CASE("roles: a spare is among all ranks, and no rank that trains counts it") {
  const auto ends = with_roles(1, [](GroupCommunicator& all, const Roles& roles) {
    require(roles.is_spare() == (all.rank() == 2), "another rank is the spare");
    require(!roles.serves(), "a spare does not serve");
    require(roles.trainers() == 2, "two ranks train");
    require(&roles.candidates() == &all && &roles.all() == &all, "all ranks may train");
    require(roles.serving().empty(), "nobody serves");
    if (!roles.is_spare()) require(roles.training().size() == 2, "two ranks share the data");
    require(roles.share_status(all.rank()) == all.rank(), "a status is this rank's own");
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
}

TEST_CASE("roles: where all ranks train there is one group") {
  const auto ends = with_roles(0, [](GroupCommunicator& all, const Roles& roles) {
    require(&roles.training() == &all && &roles.candidates() == &all, "all ranks train");
    require(roles.trainers() == rank_count && !roles.is_spare(), "nobody is a spare");
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
}

TEST_CASE("roles: a rank that serves ends with the status of the lowest that trains") {
  struct Serves final : Strategy, Server {
    StrategyParts parts() override { return {.server = this}; }
    void serve(WeightsImmigration&) override {}
  } server;
  ThreadNetwork network(rank_count);
  const auto ends = endings(rank_count, [&](int rank) {
    GroupCommunicator all(network.transport(rank), {.shared_memory = false});
    const Roles roles(all, rank == 0 ? &server : nullptr);
    require(roles.serves() == (rank == 0), "rank 0 serves");
    require(roles.share_status(10 + rank) == std::max(11, 10 + rank), "another status");
    all.leave(0);
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
}

TEST_CASE("roles: spares alone do not train") {
  const auto ends = with_roles(rank_count, [](GroupCommunicator&, const Roles&) {});
  CHECK(count_endings(ends, "says all ranks ") == 1);
}

}  // namespace plexaura::testing::roles_test
