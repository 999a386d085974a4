#include "core/compile/measure.h"

#include <doctest/doctest.h>

#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "tests/support/backend.h"
#include "tests/support/two_speeds.h"

namespace plexaura::testing {

using namespace std::chrono_literals;

TEST_CASE("a kernel that waits takes at least so long, another one less") {
  TwoSpeeds backend(test_backend(), "mul", 3ms, 0us);
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4, 6}});
  const Node y = x * x;
  const Region region = single(graph, y.id());
  const RegionQuery query{graph, region, {std::nullopt, std::nullopt}, {true}};
  for (const bool accumulate : {false, true}) {
    const std::vector<Candidate> candidates = backend.propose(query);
    const std::vector<double> seconds =
        measure(backend, query, candidates, accumulate && candidates[0].accumulates);
    REQUIRE(seconds.size() == 2);
    CHECK(seconds[0] >= 3e-3);
    CHECK(seconds[1] > 0);
    CHECK(seconds[1] < 3e-3);
  }
}

TEST_CASE("kernels with scratch memory and outputs that nobody wants can be measured") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4, 16, 5, 5}});
  const Region region = single(graph, moments(x).mean.id());
  const RegionQuery query{graph, region, {std::nullopt}, {true, false, true}};
  const std::vector<Candidate> candidates = test_backend().propose(query);
  const std::vector<double> seconds = measure(test_backend(), query, candidates, false);
  REQUIRE(seconds.size() == candidates.size());
  for (const double each : seconds) CHECK(each > 0);
}

}  // namespace plexaura::testing
