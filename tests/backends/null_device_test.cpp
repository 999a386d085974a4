#include "tests/support/null_device.h"

#include <doctest/doctest.h>

#include "core/device/transfer.h"
#include "core/ops/binary.h"
#include "tests/support/backend_fixture.h"

namespace plexaura::testing::null_device_test {

TEST_CASE("the null device goes through every motion and computes nothing") {
  NullDevice device({.layout = {}, .regions = {}, .without = {"mul"}, .workspace = 32});
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {1000, 1000, 1000}});
  const Node y = x + x;
  const Region region = single(graph, y.id());
  const RegionQuery query{graph, region, {std::nullopt, std::nullopt}, {true}};
  const std::vector<Candidate> candidates = device.propose(query);
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0].in_place.size() == 2);
  const auto memory = device.allocate(std::size_t{4} << 30, MemoryUse::device);
  const auto kernel = candidates[0].make();
  CHECK(kernel->workspace() == 32);
  const auto launch = kernel->bind({});
  launch->run();
  wait_for(device);
  CHECK(device.launches() == 1);
  CHECK(device.kernels_made() == 1);
  CHECK(device.allocated_bytes() == std::size_t{4} << 30);

  const Node z = x * x;
  const Region missing = single(graph, z.id());
  CHECK(device.propose({graph, missing, {std::nullopt, std::nullopt}, {true}}).empty());
}

}  // namespace plexaura::testing::null_device_test
