#include "distributed/choices/choose_exchange.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <numeric>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing::choose_exchange_test {

namespace {

constexpr std::int64_t elements = 20'000;  // in each of eight layers

Placement layers() {
  Placement placement{ArenaTypes::all(DType::float32), {}};
  for (int i = 0; i < 8; ++i)
    placement.append(fmt::format("weight{}", i), {DType::float32, {elements}}, ParameterRole::trainable,
                     Layout::row_major(1));
  return placement;
}

struct Chosen {
  ExchangeWay way;
  std::int64_t sent = 0;    // bytes sent to make the choice
  std::vector<float> sums;  // computed by the chosen algorithm
};

// Returns the result of each rank, over links that take this time for a byte.
std::vector<Chosen> choices(const std::vector<std::string>& hosts, const ExchangeQuestion& question,
                            double seconds_per_byte = 0) {
  std::vector<Chosen> made(hosts.size());
  ThreadNetwork network(static_cast<int>(hosts.size()));
  network.slow_down(seconds_per_byte);
  for (const std::string& end : with_hosts(network, hosts, {}, [&](Communicator& ranks) {
         Chosen& mine = made[static_cast<std::size_t>(ranks.rank())];
         mine.way = choose_exchange(question, layers(), ranks);
         mine.sent = ranks.bytes_sent().value();
         mine.sums = summands<float>(ranks.rank(), 1000);
         ranks.sum(DType::float32, reinterpret_cast<std::byte*>(mine.sums.data()), 1000, "what was chosen");
       }))
    if (end != "fine") throw InternalError("test failed: a rank " + end);
  return made;
}

}  // namespace

TEST_CASE("choice of buckets: all ranks make the same one, and then sum by it in the usual order") {
  for (const std::vector<std::string>& hosts :
       {std::vector<std::string>{"a", "a"}, {"a", "b"}, {"a", "a", "b"}}) {
    const ExchangeQuestion question{{"auto", "tree"}, bucket_sizes_from(1 << 20), hosts.back() == "b", 1};
    const std::vector<Chosen> made = choices(hosts, question);
    for (const Chosen& chosen : made) {
      CHECK(chosen.way.algorithm == made[0].way.algorithm);
      CHECK(chosen.way.bucket_bytes == made[0].way.bucket_bytes);
      CHECK(std::ranges::count(question.algorithms, chosen.way.algorithm) == 1);
      CHECK(std::ranges::count(question.bucket_bytes, chosen.way.bucket_bytes) == 1);
      CHECK(chosen.sums == sums<float>(static_cast<int>(hosts.size()), 1000));
    }
  }
}

// All gradients take longer than half a second, and a bucket of one layer takes an eighth of that.
TEST_CASE("choice of buckets: over a slow link the last one is to be small where others may be hidden") {
  const ExchangeQuestion question{{"auto"}, {1 << 20, 4 * elements}, true};
  for (const Chosen& chosen : choices({"a", "b"}, question, 1e-6))
    CHECK(chosen.way.bucket_bytes == 4 * elements);
}

TEST_CASE("choice of buckets: where nothing is hidden large ones stay") {
  const ExchangeQuestion question{{"auto"}, {1 << 20, 4 * elements}, false};
  for (const Chosen& chosen : choices({"a", "b"}, question, 1e-6)) CHECK(chosen.way.bucket_bytes == 1 << 20);
}

// The first measured sum, of 64 kB, takes a third of a second, and a sum of all gradients would take three
// seconds. So all measurements together send fewer bytes than all gradients have.
TEST_CASE("choice of buckets: over the slowest links one algorithm is measured, with few calls") {
  const ExchangeQuestion question{{"auto", "tree"}, {1 << 20, 4 * elements}, true};
  const Chosen chosen = choices({"a", "b"}, question, 5e-6)[0];
  CHECK(chosen.way.algorithm == "auto");
  constexpr std::int64_t gradient_bytes = 8 * elements * sizeof(float);
  CHECK(chosen.sent < gradient_bytes);
  CHECK(choices({"a", "b"}, question)[0].sent > gradient_bytes);
}

TEST_CASE("choice of buckets: a rank that is lost meanwhile is given up after the deadline") {
  ThreadNetwork network(2);
  const double begin = seconds_now();
  const auto ends = with_hosts(network, {"a", "b"}, {.deadline_seconds = 0.5}, [&](Communicator& ranks) {
    if (ranks.rank() == 1) network.cut(1);
    choose_exchange({{"auto"}, bucket_sizes_from(1 << 20), true}, layers(), ranks);
  });
  CHECK(count_endings(ends, "fine") == 0);
  CHECK(seconds_now() - begin < 20);
}

TEST_CASE("choice of buckets: there is something to choose from where there are two of anything") {
  CHECK(ExchangeQuestion{{"auto"}, {1}}.ways().size() == 1);
  CHECK(ExchangeQuestion{{"auto", "tree"}, {1}}.ways().size() == 2);
  CHECK(ExchangeQuestion{{"auto"}, {2, 1}}.ways().size() == 2);
}

}  // namespace plexaura::testing::choose_exchange_test
