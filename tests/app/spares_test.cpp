#include "app/spares.h"

#include <cstdlib>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "distributed/communicator/group_communicator.h"
#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing::spares_test {

namespace {

constexpr const char* variable = "PLEXAURA_SPARES";

// Returns for each rank the number that it reads from the variable, or how it ends.
std::vector<std::string> read_as(const char* text, int ranks) {
  setenv(variable, text, 1);
  ThreadNetwork network(ranks);
  std::vector<int> found(static_cast<std::size_t>(ranks));
  std::vector<std::string> ends = endings(ranks, [&](int rank) {
    GroupCommunicator all(network.transport(rank), {});
    found[static_cast<std::size_t>(rank)] = read_spares(all);
    all.leave(0);
  });
  unsetenv(variable);
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (ends[i] == "fine") ends[i] = std::to_string(found[i]);
  return ends;
}

// Runs one rank for each letter; the letter names its machine.
std::vector<int> computing(const std::string& machines, int spares) {
  const int ranks = static_cast<int>(machines.size());
  ThreadNetwork network(ranks);
  std::vector<int> found(machines.size());
  const auto ends = endings(ranks, [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const std::string host(1, machines[at]);
    GroupCommunicator all(network.transport(rank), {.shared_memory = false}, nullptr,
                          {host, rank + 1, "unknown", host});
    found[at] = ranks_that_compute_here(all, spares);
    all.leave(0);
  });
  CHECK(ends == std::vector<std::string>(machines.size(), "fine"));
  return found;
}

}  // namespace

TEST_CASE("spares: their number stands in a variable") {
  CHECK(read_as("1", 3) == std::vector<std::string>(3, "1"));
  CHECK(read_as("2", 4) == std::vector<std::string>(4, "2"));
  CHECK(read_as("0", 1) == std::vector<std::string>{"0"});
}

TEST_CASE("spares: two ranks at least have to train") {
  for (const char* text : {"2", "3", "-1", "x", "1x", "", " 1", "99999999999"}) {
    CAPTURE(text);
    const auto ends = read_as(text, 3);
    CHECK(count_endings(
              ends, std::string("says the variable PLEXAURA_SPARES is '") + text + "', of 3 ranks; ") == 1);
    CHECK(count_endings(ends, "hears ") == 2);
  }
}

TEST_CASE("spares: they do not compute beside ranks that train") {
  CHECK(computing("aaa", 1) == std::vector{2, 2, 2});
  CHECK(computing("aab", 1) == std::vector{2, 2, 1});
  CHECK(computing("abbb", 1) == std::vector{1, 2, 2, 2});
  CHECK(computing("aabb", 2) == std::vector{2, 2, 2, 2});
  CHECK(computing("ab", 0) == std::vector{1, 1});
}

}  // namespace plexaura::testing::spares_test
