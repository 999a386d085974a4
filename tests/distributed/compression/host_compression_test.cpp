#include "distributed/compression/host_compression.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "tests/distributed/compression/exchanges.h"
#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing::host_compression_test {

namespace {

using Hosts = std::vector<std::string>;

const Hosts pairs{"a", "a", "b", "b"};
const Hosts uneven{"a", "b", "b", "c", "c", "c"};
const std::vector<Hosts> several_hosts{pairs, uneven, {"a", "b", "a", "b"}, {"a", "b", "a", "c"}};

// Shapes of a vector and a matrix.
const std::vector<std::vector<std::int64_t>> shapes{{16}, {16, 32}};
constexpr std::size_t elements = 16 + 16 * 32;

std::vector<CompressionOptions> all_compressions() {
  std::vector<CompressionOptions> all;
  for (const std::string& name : compression_names())
    if (name != "none") all.push_back({.name = name, .ratio = 0.05});
  return all;
}

Floats gradient(int rank, int step) {
  Floats made;
  for (std::size_t i = 0; i < elements; ++i)
    made.push_back(std::sin(static_cast<float>((i + 1) * (static_cast<std::size_t>(rank) + 2)) +
                            static_cast<float>(step)));
  return made;
}

// Returns the ranks of each host. Hosts are in the order of their first ranks.
std::vector<std::vector<int>> ranks_of(const Hosts& hosts) {
  std::vector<std::vector<int>> ranks;
  std::map<std::string, std::size_t> numbers;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto [host, is_new] = numbers.emplace(hosts[rank], ranks.size());
    if (is_new) ranks.emplace_back();
    ranks[host->second].push_back(static_cast<int>(rank));
  }
  return ranks;
}

// Returns the sum of the gradients of a host's ranks (up to three) in the first step.
Floats host_gradient(const std::vector<int>& ranks) {
  Floats sum = gradient(ranks[0], 0);
  for (std::size_t next = 1; next < ranks.size(); ++next) {
    const Floats more = gradient(ranks[next], 0);
    for (std::size_t i = 0; i < elements; ++i) sum[i] += more[i];
  }
  return sum;
}

// Returns the bytes that the host which sends most sends in one exchange of a matrix.
std::size_t bytes_leaving(const Hosts& hosts, const CompressionOptions& options) {
  constexpr std::int64_t rows = 300;
  Placement placement{ArenaTypes::all(DType::float32), {}};
  placement.append("weight", {DType::float32, Shape{rows, rows}}, ParameterRole::trainable,
                   Layout::row_major(2));
  const std::vector<Bucket> buckets{{0, rows * rows, DType::float32}};
  ThreadNetwork network(static_cast<int>(hosts.size()));
  const auto leaving = [&](std::size_t from) {
    std::size_t bytes = 0;
    for (std::size_t to = 0; to < hosts.size(); ++to)
      if (hosts[to] != hosts[from]) bytes += network.bytes_sent(static_cast<int>(from), static_cast<int>(to));
    return bytes;
  };
  std::vector<std::size_t> by_rank(hosts.size());
  for (const std::string& end : with_hosts(network, hosts, {}, [&](Communicator& communicator) {
         const auto rank = static_cast<std::size_t>(communicator.rank());
         const auto compression = make_compression(options, communicator);
         compression->begin(placement, buckets);
         Floats owed(rows * rows, 1.0F);
         Floats sums(owed.size());
         const std::size_t before = leaving(rank);
         const std::int64_t sent_before = compression->bytes_sent();
         compression->exchange(0, owed, sums, "a bucket");
         by_rank[rank] = leaving(rank) - before;
         const std::int64_t sent = compression->bytes_sent() - sent_before;
         const bool adds = hosts_add_first(communicator.place().count, communicator.size());
         CHECK(sent == (adds ? static_cast<std::int64_t>(by_rank[rank]) : 0));
       }))
    if (end != "fine") throw InternalError("test failed: a rank " + end);
  std::size_t most = 0;
  for (const std::vector<int>& host : ranks_of(hosts)) {
    std::size_t bytes = 0;
    for (const int rank : host) bytes += by_rank[static_cast<std::size_t>(rank)];
    most = std::max(most, bytes);
  }
  return most;
}

// Works for a while without sending anything to other ranks.
class Slow final : public Compression {
 public:
  explicit Slow(double seconds) : seconds_(seconds) {}

  void exchange(std::size_t, std::span<float>, std::span<float> sums, std::string_view) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    std::ranges::fill(sums, 7.0F);
  }
  std::vector<Crossing> crossings(std::size_t, std::int64_t, int) const override { return {}; }

 private:
  double seconds_;
};

}  // namespace

TEST_CASE("host compression: hosts with several ranks get the bits of hosts whose one rank brings the sum") {
  for (const CompressionOptions& options : all_compressions())
    for (const Hosts& hosts : several_hosts) {
      CAPTURE(options.name);
      CAPTURE(hosts.size());
      const std::vector<std::vector<int>> ranks = ranks_of(hosts);
      const auto seen = exchange(options, hosts, 1, gradient, shapes)[0];
      const auto of_hosts = [&](int host, int) {
        return host_gradient(ranks[static_cast<std::size_t>(host)]);
      };
      const auto expected = exchange(options, static_cast<int>(ranks.size()), 1, of_hosts, shapes)[0];
      for (std::size_t host = 0; host < ranks.size(); ++host)
        for (const int rank : ranks[host]) {
          const Exchanged& theirs = seen[static_cast<std::size_t>(rank)];
          CHECK(theirs.sums == expected[0].sums);
          CHECK(theirs.owed == (rank == ranks[host][0] ? expected[host].owed : Floats(elements)));
        }
    }
}

// Allows for one rounding error of each host's contribution, and one of the sum.
TEST_CASE("host compression: the sums are those of all ranks, but for what the method rounds") {
  const std::map<std::string, double> roundings{{"fp16", 0x1p-11}, {"bf16", 0x1p-8}, {"top-k", 0x1p-23}};
  for (const auto& [name, rounding] : roundings) {
    CAPTURE(name);
    const auto seen = exchange({.name = name, .ratio = 1}, uneven, 1, gradient, shapes)[0];
    double farthest = 0;
    for (std::size_t i = 0; i < elements; ++i) {
      double sum = 0;
      for (int rank = 0; rank < 6; ++rank) sum += gradient(rank, 0)[i];
      for (const Exchanged& rank : seen) farthest = std::max(farthest, std::abs(sum - rank.sums[i]));
    }
    CHECK(farthest <= 2 * 6 * rounding);  // no rank contributes more than 1
    CHECK(farthest > 0);
  }
}

TEST_CASE("host compression: what is owed and what has crossed is what was brought, in each run the same") {
  constexpr int steps = 10;
  for (const CompressionOptions& options : all_compressions()) {
    CAPTURE(options.name);
    const auto seen = exchange(options, uneven, steps, gradient, shapes);
    const auto again = exchange(options, uneven, steps, gradient, shapes);
    std::vector<double> missing(elements);
    for (std::size_t step = 0; step < seen.size(); ++step)
      for (std::size_t rank = 0; rank < uneven.size(); ++rank) {
        const Floats brought = gradient(static_cast<int>(rank), static_cast<int>(step));
        for (std::size_t i = 0; i < elements; ++i) missing[i] += brought[i];
        CHECK(seen[step][rank].sums == seen[step][0].sums);
        CHECK(again[step][rank].sums == seen[step][rank].sums);
        CHECK(again[step][rank].owed == seen[step][rank].owed);
      }
    for (std::size_t i = 0; i < elements; ++i) {
      for (const auto& step : seen) missing[i] -= step[0].sums[i];
      for (const Exchanged& rank : seen.back()) missing[i] -= rank.owed[i];
      missing[i] = std::abs(missing[i]);
    }
    CHECK(std::ranges::max(missing) < 1e-3);  // allows for rounding in float32
  }
}

// Calls of all ranks also send their names, some hundred bytes.
TEST_CASE("host compression: a host with several ranks sends as much as one with one rank") {
  for (const CompressionOptions& options : all_compressions()) {
    CAPTURE(options.name);
    const std::size_t alone = bytes_leaving({"a", "b"}, options);
    CHECK(bytes_leaving(pairs, options) <= alone + 2000);
    CHECK(bytes_leaving({"a", "a", "a", "b", "b", "b"}, options) <= alone + 2000);
  }
}

TEST_CASE("host compression: whoever waits for the first rank of a host waits for longer than the deadline") {
  constexpr double deadline = 2;
  ThreadNetwork network(4);
  const auto ends =
      with_hosts(network, pairs, {.deadline_seconds = deadline}, [&](Communicator& communicator) {
        HostCompression compression(communicator,
                                    [](Communicator&) { return std::make_unique<Slow>(1.5 * deadline); });
        Floats owed(100, 1.0F);
        Floats sums(owed.size());
        compression.exchange(0, owed, sums, "a bucket");
        CHECK(sums == Floats(100, 7));
      });
  for (const std::string& end : ends) CHECK(end == "fine");
}

// Rank 1 waits for rank 0, which waits for the other host.
TEST_CASE(
    "host compression: whoever waits for the first rank of a host hears of a rank that is lost elsewhere") {
  ThreadNetwork network(4);
  std::atomic<int> ready = 0;
  const auto ends = with_hosts(network, pairs, {.deadline_seconds = 2}, [&](Communicator& communicator) {
    const auto compression = make_compression({.name = "fp16"}, communicator);
    for (++ready; ready < 4;) std::this_thread::yield();
    if (communicator.rank() == 2) network.cut(2);
    if (communicator.rank() == 2) return;
    Floats owed(100, 1.0F);
    Floats sums(owed.size());
    compression->exchange(0, owed, sums, "bucket 2 of step 17");
  });
  int speakers = 0;
  for (const std::size_t rank : {0, 1, 3}) {
    CHECK(ends[rank].find("rank 2") != std::string::npos);
    if (ends[rank].starts_with("says ")) ++speakers;
  }
  CHECK(speakers == 1);
}

}  // namespace plexaura::testing::host_compression_test
