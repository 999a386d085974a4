#include "distributed/choices/choose_compression.h"

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/base/error.h"
#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing::choose_compression_test {

namespace {

using Shapes = std::vector<std::vector<std::int64_t>>;

const Shapes layers{{300, 200}, {300}, {64, 16, 3, 3}};

Placement placement_of(const Shapes& shapes) {
  Placement placement{ArenaTypes::all(DType::float32), {}};
  for (const std::vector<std::int64_t>& extents : shapes)
    placement.append(fmt::format("weight{}", placement.entries.size()), {DType::float32, Shape(extents)},
                     ParameterRole::trainable, Layout::row_major(static_cast<int>(extents.size())));
  return placement;
}

// Returns the choice of each rank, over links that take this time for a byte.
std::vector<CompressionChoice> choices(const std::vector<std::string>& hosts, const Shapes& shapes,
                                       double seconds_per_byte = 0, std::int64_t bucket_bytes = 1 << 20) {
  std::vector<CompressionChoice> made(hosts.size());
  ThreadNetwork network(static_cast<int>(hosts.size()));
  network.slow_down(seconds_per_byte);
  const Placement placement = placement_of(shapes);
  for (const std::string& end : with_hosts(network, hosts, {}, [&](Communicator& ranks) {
         made[static_cast<std::size_t>(ranks.rank())] =
             choose_compression({}, placement, bucket_bytes, true, ranks);
       }))
    if (end != "fine") throw InternalError("test failed: a rank " + end);
  return made;
}

std::vector<std::string> names_in(const CompressionChoice& choice) {
  std::vector<std::string> names;
  for (const ExpectedSeconds& method : choice.expected) names.push_back(method.name);
  return names;
}

}  // namespace

TEST_CASE("choice of a compression: on one host it is none, and nothing is measured") {
  for (const CompressionChoice& choice : choices({"a", "a", "a"}, layers)) {
    CHECK(choice.name == "none");
    CHECK(choice.expected.empty());
  }
}

TEST_CASE("choice of a compression: all ranks have the same figures of all methods") {
  for (const std::vector<std::string>& hosts :
       {std::vector<std::string>{"a", "b"}, {"a", "a", "b"}, {"a", "b", "b", "a"}}) {
    const auto made = choices(hosts, layers);
    CHECK(names_in(made[0]) == compression_names());
    for (const CompressionChoice& choice : made) {
      CHECK(choice.name == made[0].name);
      CHECK(choice.bytes_per_second == made[0].bytes_per_second);
      REQUIRE(choice.expected.size() == made[0].expected.size());
      for (std::size_t i = 0; i < choice.expected.size(); ++i) {
        CHECK(choice.expected[i].least == made[0].expected[i].least);
        CHECK(choice.expected[i].most == made[0].expected[i].most);
        CHECK(std::isfinite(choice.expected[i].most));
        CHECK(choice.expected[i].least > 0);
        CHECK(choice.expected[i].least == choice.expected[i].most);  // there is only one bucket
      }
    }
  }
}

TEST_CASE("choice of a compression: of several buckets the backward pass may hide some") {
  const auto made = choices({"a", "b"}, layers, 0, 1000);
  for (const ExpectedSeconds& method : made[0].expected) CHECK(method.least < method.most);
}

// A kilobyte takes five milliseconds, and all gradients take more than a second.
TEST_CASE("choice of a compression: over a slow link few bytes cross") {
  const auto made = choices({"a", "b"}, layers, 5e-6);
  CHECK((made[0].name == "top-k" || made[0].name == "powersgd"));
  const double plain = made[0].expected[0].most;
  CHECK(plain > 1);
  CHECK(made[0].expected[1].most < 0.75 * plain);
  CHECK(made[0].expected[1].most > 0.25 * plain);  // half of the bytes
  CHECK(made[0].expected[3].most < 0.25 * plain);
}

TEST_CASE("choice of a compression: a method that has no use for these parameters is left out") {
  const auto made = choices({"a", "b"}, {{20}, {3, 3}});
  CHECK(names_in(made[0]) == std::vector<std::string>{"none", "fp16", "bf16", "top-k"});
}

TEST_CASE("choice of a compression: where nothing is trained there is nothing to compress") {
  CHECK(choices({"a", "b"}, {})[0].name == "none");
}

}  // namespace plexaura::testing::choose_compression_test
