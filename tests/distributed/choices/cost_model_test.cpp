#include "distributed/choices/cost_model.h"

#include <array>
#include <doctest/doctest.h>
#include <vector>

#include "core/base/error.h"
#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing::cost_model_test {

namespace {

using Call = Crossing::Call;

const RankPlaces two_hosts{.host_of = {0, 1}};
const RankPlaces three_hosts{.host_of = {0, 1, 2}};
const RankPlaces pairs{.host_of = {0, 0, 1, 1}, .shares_memory = true};
const RankPlaces dealt{.host_of = {0, 1, 0, 1}, .shares_memory = true};
const RankPlaces uneven{.host_of = {0, 0, 0, 1}, .shares_memory = true};

// A link carries a kilobyte in a second, and a call takes an eighth of a second. Blocks are twice as fast.
const LinkSpeed links{.latency = 0.125, .sum_bytes_per_second = 1000, .block_bytes_per_second = 2000};

// A millisecond, and another one for each thousand bytes.
constexpr CallSpeed calls{.latency = 1e-3, .bytes_per_second = 1e6};

std::size_t choice(const std::vector<ExchangeWay>& ways) { return choose(ways); }

ExpectedSeconds method(double least, double most) { return {"", least, most}; }

// Returns the bytes that the host which sends most has sent in one exchange of `elements` floats, after a
// given call.
double counted(const std::vector<std::string>& hosts, const CompressionOptions& options,
               std::vector<Crossing>& crossings, std::vector<int>& host_of) {
  constexpr std::int64_t rows = 300;
  constexpr std::int64_t columns = 200;
  Placement placement{ArenaTypes::all(DType::float32), {}};
  placement.append("weight", {DType::float32, Shape{rows, columns}}, ParameterRole::trainable,
                   Layout::row_major(2));
  placement.append("bias", {DType::float32, Shape{rows}}, ParameterRole::trainable, Layout::row_major(1));
  const std::int64_t elements = placement.count(ParameterRole::trainable);
  const std::vector<Bucket> buckets{{0, elements, DType::float32}};
  const auto ranks = static_cast<int>(hosts.size());
  ThreadNetwork network(ranks);
  const auto leaving = [&](int from) {
    std::size_t bytes = 0;
    for (int to = 0; to < ranks; ++to)
      if (hosts[static_cast<std::size_t>(to)] != hosts[static_cast<std::size_t>(from)])
        bytes += network.bytes_sent(from, to);
    return bytes;
  };
  std::vector<std::size_t> by_rank(hosts.size());
  host_of.resize(hosts.size());
  const auto ends = with_hosts(network, hosts, {}, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    SharedWindow window = communicator.allocate_shared(static_cast<std::size_t>(elements) * 4, "gradients");
    const auto compression = make_compression(options, communicator);
    if (compression) compression->begin(placement, buckets);
    std::vector<float> owed(static_cast<std::size_t>(elements), 1.0F);
    std::vector<float> sums(owed.size());
    const std::size_t before = leaving(communicator.rank());
    if (compression)
      compression->exchange(0, owed, sums, "a bucket");
    else
      communicator.sum_window(window, 0, DType::float32, elements, "a bucket");
    by_rank[rank] = leaving(communicator.rank()) - before;
    host_of[rank] = communicator.place().index;
    if (rank == 0) {
      crossings = {{Call::sum_in_windows, elements * 4}};
      const bool hosts_add = hosts_add_first(communicator.place().count, ranks);
      const int parties = hosts_add ? communicator.place().count : ranks;
      if (compression) crossings = compression->crossings(0, elements, parties);
    }
  });
  for (const std::string& end : ends)
    if (end != "fine") throw InternalError("test failed: a rank " + end);
  std::vector<double> by_host(hosts.size());
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    by_host[static_cast<std::size_t>(host_of[rank])] += static_cast<double>(by_rank[rank]);
  return *std::ranges::max_element(by_host);
}

}  // namespace

TEST_CASE("cost model: blocks go from each rank of a host to each rank elsewhere") {
  const Crossing blocks{Call::blocks, 100};
  CHECK(bytes_leaving(two_hosts, blocks) == 100);
  CHECK(bytes_leaving(three_hosts, blocks) == 200);
  CHECK(bytes_leaving(pairs, blocks) == 400);
  CHECK(bytes_leaving(uneven, blocks) == 300);
}

TEST_CASE("cost model: a host that shares memory sends one sum for each block of ranks") {
  const Crossing sum{Call::sum_in_windows, 1200};
  CHECK(bytes_leaving(two_hosts, sum) == 1200);
  CHECK(bytes_leaving(three_hosts, sum) == 1600);
  CHECK(bytes_leaving(pairs, sum) == 1200);
  CHECK(bytes_leaving(dealt, sum) == 1800);   // the ranks of a host form two blocks
  CHECK(bytes_leaving(uneven, sum) == 1800);  // 0 + 1, and 2
}

TEST_CASE("cost model: without it, and for other arrays, each rank sends what it has") {
  RankPlaces apart = pairs;
  apart.shares_memory = false;
  CHECK(bytes_leaving(apart, {Call::sum_in_windows, 1200}) == 2400);
  CHECK(bytes_leaving(pairs, {Call::sum, 1200}) == 2400);
  CHECK(bytes_leaving(two_hosts, {Call::sum, 1200}) == 1200);
}

TEST_CASE("cost model: where hosts have several ranks, one rank of each host compresses") {
  CHECK(places_that_compress(pairs).host_of == std::vector{0, 1});
  CHECK(places_that_compress(dealt).host_of == std::vector{0, 1});
  CHECK(places_that_compress(three_hosts).host_of == three_hosts.host_of);
  CHECK(places_that_compress({.host_of = {0, 0, 0}}).host_of == std::vector{0, 0, 0});
}

TEST_CASE("cost model: the bytes are those that cross") {
  for (const std::vector<std::string>& hosts : {std::vector<std::string>{"a", "b"},
                                                {"a", "b", "c"},
                                                {"a", "a", "b", "b"},
                                                {"a", "b", "a", "b"},
                                                {"a", "a", "a", "b"},
                                                {"a", "b", "b", "c", "c", "c"}})
    for (const std::string& name : compression_names()) {
      CAPTURE(name);
      CAPTURE(hosts.size());
      CAPTURE(hosts[1]);
      std::vector<Crossing> crossings;
      RankPlaces places{.shares_memory = hosts.size() > 3};
      const double bytes = counted(hosts, {.name = name, .ratio = 0.1}, crossings, places.host_of);
      if (name != "none") places = places_that_compress(places);
      double expected = 0;
      for (const Crossing& crossing : crossings) expected += bytes_leaving(places, crossing);
      CHECK(bytes >= 0.98 * expected);         // parts end at whole cache lines
      CHECK(bytes <= 1.02 * expected + 2000);  // calls of all ranks also send their names
    }
}

TEST_CASE("cost model: a step without overlap waits for all buckets") {
  // From each of two hosts 2,000 and 1,000 bytes: 0.125 + 2 and 0.125 + 1 seconds.
  const MethodWork plain{
      "none", two_hosts, 0, {{{Call::sum_in_windows, 2000}}, {{Call::sum_in_windows, 1000}}}};
  const ExpectedSeconds expected = expected_seconds(plain, links, false);
  CHECK(expected.name == "none");
  CHECK(expected.least == 3.25);
  CHECK(expected.most == 3.25);
}

TEST_CASE("cost model: with overlap it waits for the last bucket at least, and computes all the same") {
  // Twice 0.125 + 0.5 and twice 0.125 + 0.25 seconds, and half a second of the processor.
  const MethodWork half{"bf16", two_hosts, 0.5, {{2, {Call::blocks, 1000}}, {2, {Call::blocks, 500}}}};
  const ExpectedSeconds hidden = expected_seconds(half, links, true);
  CHECK(hidden.least == 0.5 + 0.75);
  CHECK(hidden.most == 0.5 + 1.25 + 0.75);
}

TEST_CASE("cost model: nothing is compressed where no method is clearly faster") {
  CHECK(choose(std::vector{method(1, 1)}) == 0);
  CHECK(choose(std::vector{method(1, 1), method(0.76, 0.76)}) == 0);
  CHECK(choose(std::vector{method(1, 1), method(0.75, 0.75)}) == 1);
}

TEST_CASE("cost model: nor to save less than a millisecond") {
  CHECK(choose(std::vector{method(0.002, 0.002), method(0.0011, 0.0011)}) == 0);
  CHECK(choose(std::vector{method(0.002, 0.002), method(0.0009, 0.0009)}) == 1);
  CHECK(choose(std::vector{method(0.002, 0.5), method(0.0011, 0.1)}) == 0);
}

TEST_CASE("cost model: a method has to be faster whatever the backward pass hides") {
  CHECK(choose(std::vector{method(1, 8), method(1, 2)}) == 0);
  CHECK(choose(std::vector{method(1, 8), method(0.5, 8)}) == 0);
  CHECK(choose(std::vector{method(1, 8), method(0.5, 4)}) == 1);
}

TEST_CASE(
    "cost model: a method that changes gradients more has to be clearly faster than one that changes them "
    "less") {
  CHECK(choose(std::vector{method(4, 4), method(2, 2), method(1.9, 1.9), method(1.6, 1.6)}) == 1);
  CHECK(choose(std::vector{method(4, 4), method(2, 2), method(1.9, 1.9), method(1, 1)}) == 3);
  CHECK(choose(std::vector{method(4, 4), method(5, 5), method(5, 5), method(1, 1), method(0.9, 0.9)}) == 3);
}

TEST_CASE("cost of an exchange: the last bucket counts twice where the others may be hidden") {
  constexpr std::array<std::int64_t, 2> buckets{10'000, 5'000};
  CHECK(expected_seconds(buckets, calls, false) == doctest::Approx(17e-3));
  CHECK(expected_seconds(buckets, calls, true) == doctest::Approx(23e-3));
}

TEST_CASE("cost of an exchange: buckets of another size have to be clearly faster") {
  CHECK(choice({{"auto", 8, 1.0}}) == 0);
  CHECK(choice({{"auto", 8, 1.0}, {"auto", 4, 0.76}}) == 0);
  CHECK(choice({{"auto", 8, 1.0}, {"auto", 4, 0.74}}) == 1);
  CHECK(choice({{"auto", 8, 1.0}, {"auto", 4, 0.74}, {"auto", 2, 0.6}}) == 1);
  CHECK(choice({{"auto", 8, 1.0}, {"auto", 4, 0.74}, {"auto", 2, 0.5}}) == 2);
  CHECK(choice({{"auto", 8, 1e-4}, {"auto", 4, 1e-5}}) == 0);  // too little to matter
}

TEST_CASE("cost of an exchange: another algorithm has to be so by more") {
  CHECK(choice({{"auto", 8, 1.0}, {"tree", 8, 0.51}}) == 0);
  CHECK(choice({{"auto", 8, 1.0}, {"tree", 8, 0.49}}) == 1);
}

}  // namespace plexaura::testing::cost_model_test
