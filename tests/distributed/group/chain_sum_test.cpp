#include "distributed/group/chain_sum.h"

#include <algorithm>
#include <atomic>
#include <doctest/doctest.h>
#include <thread>

#include "core/error.h"
#include "tests/distributed/group/thread_transport.h"
#include "tests/distributed/group/topology_support.h"

namespace plexaura::testing::chain_sum_test {
namespace {

const std::vector<std::string> five_hosts{"a", "a", "b", "a", "b"};
constexpr int rank_count = 5;

// Of such sizes that any other order of adding gives other bits.
double value(int rank, std::int64_t i) {
  return (rank % 2 == 0 ? 1e16 : 1.0) * static_cast<double>(1 + rank + i % 7);
}

std::vector<double> expected(std::int64_t count) {
  std::vector<double> sums(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    for (int rank = 0; rank < rank_count; ++rank) sums[static_cast<std::size_t>(i)] += value(rank, i);
  }
  return sums;
}

// The values of all ranks, each summed by a thread of its own; groups share what shared memory would.
std::vector<std::vector<double>> sum(const Route& route, std::int64_t count) {
  std::vector<std::vector<double>> values(rank_count);
  for (int rank = 0; rank < rank_count; ++rank) {
    for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(rank)].push_back(value(rank, i));
  }
  ThreadNetwork network(rank_count);
  const auto ends = endings(rank_count, [&](int rank) {
    const std::unique_ptr<Transport> transport = network.transport(rank);
    Alarm alarm(transport->duplicate());
    const Topology topology = on_hosts(five_hosts, rank);
    ChainSum chain(*transport, route, topology, alarm, 30);
    std::vector<std::byte*> arrays;
    for (const std::vector<int>& group : route.groups) {
      if (std::ranges::find(group, rank) == group.end()) continue;
      for (const int member : group) {
        arrays.push_back(reinterpret_cast<std::byte*>(values[static_cast<std::size_t>(member)].data()));
      }
    }
    chain.run(announce(Call::sum, "values", DType::float64, count), arrays, [] {});
  });
  CHECK(count_endings(ends, "fine") == rank_count);
  return values;
}

}  // namespace

TEST_CASE("chain sum: adds in the order of ranks, between single ranks and between nodes") {
  for (const std::int64_t count : {0, 1, 1000, 700'001}) {  // pieces are of 131072
    const std::vector<std::vector<double>> wanted(rank_count, expected(count));
    CHECK(sum(Route::over_ranks(rank_count), count) == wanted);
    CHECK(sum(Route::over_nodes(on_hosts(five_hosts, 0)), count) == wanted);
  }
}

TEST_CASE("chain sum: a rank that is lost in the middle is named by one of the others") {
  constexpr std::int64_t element_count = 1000;
  ThreadNetwork network(rank_count);
  const auto ends = endings(rank_count, [&](int rank) {
    const std::unique_ptr<Transport> transport = network.transport(rank);
    Alarm alarm(transport->duplicate());
    const Topology topology = on_hosts(five_hosts, rank);
    ChainSum chain(*transport, Route::over_ranks(rank_count), topology, alarm, 0.25);
    std::vector<double> values(element_count, 1);
    std::byte* const array = reinterpret_cast<std::byte*>(values.data());
    if (rank != 1)
      chain.run(announce(Call::sum, "bucket 3", DType::float64, element_count), std::span(&array, 1), [] {});
  });
  CHECK(count_endings(ends, "says rank 1 did not come to 'bucket 3' (sum of 1000 float64) within 0.25 s") ==
        1);
  CHECK(count_endings(ends, "hears rank 1 did not come") == 3);
  CHECK(network.forgotten() == 0);
}

TEST_CASE("chain sum: pieces go forward without waiting for the way back of those before them") {
  constexpr std::int64_t piece_count = 10;
  constexpr std::int64_t element_count = piece_count * 131'072;
  ThreadNetwork network(3);
  std::atomic<int> waiting = 2;
  int sent = 0;
  endings(3, [&](int rank) {
    const std::unique_ptr<Transport> transport = network.transport(rank);
    if (rank == 2) {  // gives nothing back, and counts when the others have given up
      while (waiting > 0) std::this_thread::yield();
      std::vector<std::byte> piece(131'072 * sizeof(double));
      for (int tag = 0; tag < 100; ++tag) {
        for (; transport->waiting(1, tag); ++sent) {
          Request request = transport->receive(piece, 1, tag);
          transport->done(request);
        }
      }
      return;
    }
    const Topology topology = on_hosts({"a", "b", "c"}, rank);
    Alarm alarm(transport->duplicate());
    ChainSum chain(*transport, Route::over_ranks(3), topology, alarm, 0.25);
    std::vector<double> values(element_count, 1);
    std::byte* const array = reinterpret_cast<std::byte*>(values.data());
    CHECK_THROWS_AS(
        chain.run(announce(Call::sum, "values", DType::float64, element_count), std::span(&array, 1), [] {}),
        DeviceError);
    --waiting;
  });
  CHECK(sent == piece_count);
}

}  // namespace plexaura::testing::chain_sum_test
