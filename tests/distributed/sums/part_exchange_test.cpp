#include "distributed/sums/part_exchange.h"

#include <chrono>
#include <doctest/doctest.h>
#include <map>
#include <thread>

#include "core/base/error.h"
#include "tests/distributed/sums/sums_support.h"
#include "tests/distributed/wire/topology_support.h"

namespace plexaura::testing::part_exchange_test {
namespace {

constexpr double megabytes = 8;
constexpr auto element_count = static_cast<std::int64_t>(megabytes * 1e6 / sizeof(float));

// Returns what each host sends to others while the ranks sum a window, as a multiple of the window's size.
std::vector<double> sent_by_hosts(const std::vector<std::string>& hosts) {
  const auto ranks = static_cast<int>(hosts.size());
  ThreadNetwork network(ranks);
  const auto ends = with_hosts(network, hosts, {}, [](Communicator& communicator) {
    SharedWindow window = communicator.allocate_shared(element_count * sizeof(float), "a window");
    communicator.sum_window(window, 0, DType::float32, element_count, "a window");
  });
  CHECK(ends == std::vector<std::string>(hosts.size(), "fine"));
  std::map<std::string, double> sent;
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to) {
      const std::string& host = hosts[static_cast<std::size_t>(from)];
      if (host != hosts[static_cast<std::size_t>(to)])
        sent[host] += static_cast<double>(network.bytes_sent(from, to)) / (megabytes * 1e6);
    }
  std::vector<double> shares;
  for (const auto& [host, share] : sent) shares.push_back(share);
  return shares;
}

}  // namespace

TEST_CASE("part exchange: every host sends what a ring sends") {
  std::vector<std::string> hosts{"a"};
  for (const char* const host : {"b", "c", "d", "e"}) {
    hosts.emplace_back(host);
    const auto count = static_cast<double>(hosts.size());
    const double ring = 2 * (count - 1) / count;
    for (const double share : sent_by_hosts(hosts)) {
      CHECK(share <= 1.02 * ring);
      CHECK(share >= 0.98 * ring);
    }
  }
}

TEST_CASE("part exchange: ranks of a host send once what is theirs together") {
  for (const double share : sent_by_hosts({"a", "a", "b", "b"})) CHECK(share <= 1.02);
  for (const double share : sent_by_hosts({"a", "a", "b", "b", "c", "c"})) CHECK(share <= 1.02 * 4 / 3);
}

TEST_CASE("part exchange: each further block that the ranks of a host have is sent, too") {
  for (const double share : sent_by_hosts({"a", "a", "a", "b", "b", "b"})) CHECK(share <= 1.52);
  for (const double share : sent_by_hosts({"a", "b", "a", "b"})) CHECK(share <= 1.52);
}

// Returns the bytes that a rank sends if it gets no answers.
std::uint64_t sent_unanswered(std::uint8_t pace) {
  ThreadNetwork network(2);
  endings(2, [&](int rank) {
    const std::unique_ptr<Transport> transport = network.transport(rank);
    Alarm alarm(transport->duplicate());
    if (rank == 1) return;
    const Topology topology = on_hosts({"a", "b"}, rank);
    PaceChoice paces;
    PartExchange exchange(SumMeans{*transport, topology, alarm, 0.25, paces});
    CallSignature call = announce(Call::sum, "values", DType::float32, element_count);
    call.pace = pace;
    std::vector<float> values(element_count, 1);
    std::byte* const array = reinterpret_cast<std::byte*>(values.data());
    CHECK_THROWS_AS(exchange.sum(call, std::span(&array, 1)), DeviceError);
  });
  CHECK(network.forgotten() == 0);
  return network.bytes_sent(0, 1);
}

TEST_CASE("part exchange: as much leaves unanswered as the pace says") {
  for (const std::uint8_t pace : {0, 1, 2}) {
    const auto& [message, ahead] = PaceChoice::pace(pace);
    CHECK(sent_unanswered(pace) >= static_cast<std::uint64_t>(ahead));
    CHECK(sent_unanswered(pace) < static_cast<std::uint64_t>(ahead + 2 * message));
  }
}

TEST_CASE("part exchange: all ranks take the pace of rank 0, and sums have the same bits") {
  constexpr std::int64_t count = 100'000;
  constexpr int calls = 4;
  const std::vector<std::string> hosts{"a", "b", "b", "c"};
  const std::vector<float> wanted = sums<float>(4, count);
  for (const bool shared : {true, false}) {
    ThreadNetwork network(4);
    const CommunicatorOptions options{.shared_memory = shared, .algorithm = "hierarchical"};
    const auto ends = with_hosts(network, hosts, options, [&](Communicator& ranks) {
      for (int call = 0; call < calls; ++call) {
        std::vector<float> values = summands<float>(ranks.rank(), count);
        ranks.sum(DType::float32, reinterpret_cast<std::byte*>(values.data()), count, "values");
        if (values != wanted) throw InternalError("a sum is wrong");
      }
    });
    CHECK(ends == std::vector<std::string>(4, "fine"));
  }
}

// The second call of the first algorithm tries longer messages; the first call of the other algorithm does
// not.
TEST_CASE("algorithms: each finds its own pace") {
  constexpr std::int64_t count = 100'000;
  constexpr auto short_messages =
      static_cast<int>(count * static_cast<std::int64_t>(sizeof(float)) / (std::int64_t{16} << 10));
  ThreadNetwork network(2);
  const auto ends = with_hosts(network, {"a", "b"}, {}, [&](Communicator& ranks) {
    std::vector<float> values(count, 1);
    const auto messages_of_sum = [&] {
      const int before = network.messages_sent(1, 0);
      ranks.sum(DType::float32, reinterpret_cast<std::byte*>(values.data()), count, "values");
      return network.messages_sent(1, 0) - before;
    };
    ranks.choose_algorithm("hierarchical");
    messages_of_sum();
    ranks.choose_algorithm("tree");
    const int of_first = messages_of_sum();
    const int of_second = messages_of_sum();
    if (ranks.rank() == 1 && (of_first < short_messages || of_second > short_messages / 2))
      throw InternalError("of another pace");
  });
  CHECK(ends == std::vector<std::string>(2, "fine"));
}

TEST_CASE("part exchange: a rank that is lost in the middle is named by one of the others") {
  constexpr int rank_count = 5;
  const std::vector<std::string> hosts{"a", "a", "b", "a", "b"};
  ThreadNetwork network(rank_count);
  const auto ends = endings(rank_count, [&](int rank) {
    const std::unique_ptr<Transport> transport = network.transport(rank);
    Alarm alarm(transport->duplicate());
    const Topology topology = on_hosts(hosts, rank);
    PaceChoice paces;
    PartExchange exchange(SumMeans{*transport, topology, alarm, 0.25, paces});
    std::vector<double> values(1000, 1);
    std::byte* const array = reinterpret_cast<std::byte*>(values.data());
    if (rank != 1) exchange.sum(announce(Call::sum, "bucket 3", DType::float64, 1000), std::span(&array, 1));
  });
  CHECK(count_endings(ends, "says rank 1 did not come to 'bucket 3' (sum of 1000 float64) within 0.25 s") ==
        1);
  CHECK(count_endings(ends, "hears rank 1 did not come") == 3);
  CHECK(network.forgotten() == 0);
}

TEST_CASE("algorithms: of a rank that is cut off within a sum all hear, and nothing is left to be received") {
  for (const char* const name : {"hierarchical", "tree", "ring"}) {
    ThreadNetwork network(4);
    const CommunicatorOptions options{.deadline_seconds = 0.5, .shared_memory = false, .algorithm = name};
    std::thread cutter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      network.cut(2);
    });
    const auto ends = with_hosts(network, {"a", "b", "c", "d"}, options, [&](Communicator& ranks) {
      std::vector<float> values(300'000, 1);
      while (true)
        ranks.sum(DType::float32, reinterpret_cast<std::byte*>(values.data()), 300'000, "bucket 3");
    });
    cutter.join();
    CAPTURE(ends);
    CHECK(count_endings(ends, "fine") == 0);
    CHECK(network.forgotten() == 0);
  }
}

}  // namespace plexaura::testing::part_exchange_test
