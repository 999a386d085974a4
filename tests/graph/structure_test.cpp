#include "core/graph/structure.h"

#include <doctest/doctest.h>
#include <functional>
#include <set>

#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/reduce.h"

namespace plexaura::testing::structure_test {

namespace {

const TensorType vector{DType::float32, {4}};

std::uint64_t hash_of(const std::function<void(Graph&)>& build) {
  Graph graph;
  build(graph);
  return structure_hash(graph);
}

}  // namespace

TEST_CASE("graphs that compute the same have one hash, wherever they were written") {
  const auto first = [](Graph& graph) { sum(graph.input("x", vector) * graph.parameter("w", vector)); };
  const auto second = [](Graph& graph) {
    const Graph::Scope scope(graph, "elsewhere");
    sum(graph.input("x", vector) * graph.parameter("w", vector));
  };
  CHECK(hash_of(first) == hash_of(second));
}

TEST_CASE("whatever changes a result changes the hash") {
  const auto constant = [](float last) {
    return [last](Graph& graph) { graph.constant(Tensor::of<float>({3}, {1, 2, last})); };
  };
  const auto update = [](bool swapped) {
    return [swapped](Graph& graph) {
      const Node a = graph.buffer("a", vector);
      const Node b = graph.buffer("b", vector);
      graph.update(swapped ? b : a, a + b);
    };
  };
  const std::vector<std::function<void(Graph&)>> builders{
      [](Graph&) {},
      [](Graph& graph) { graph.input("x", vector); },
      [](Graph& graph) { graph.input("y", vector); },
      [](Graph& graph) { graph.parameter("x", vector); },
      [](Graph& graph) {
        graph.input("x", {DType::float64, {4}});
      },
      [](Graph& graph) { dropout(graph.input("x", vector), {.p = 0.1}); },
      [](Graph& graph) { dropout(graph.input("x", vector), {.p = 0.2}); },
      [](Graph& graph) { graph.input("x", vector) - graph.input("y", vector); },
      [](Graph& graph) {
        const Node x = graph.input("x", vector);
        graph.input("y", vector) - x;
      },
      constant(3),
      constant(4),
      update(false),
      update(true)};
  std::set<std::uint64_t> hashes;
  for (const auto& build : builders) hashes.insert(hash_of(build));
  CHECK(hashes.size() == builders.size());
}

}  // namespace plexaura::testing::structure_test
