#include <doctest/doctest.h>

#include "core/compile/passes.h"
#include "core/graph/print.h"
#include "core/ops/all_reduce.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace plexaura::testing::prune_test {

namespace {

const TensorType type{DType::float32, {4}};

}  // namespace

TEST_CASE("prune keeps what roots and updates need, in order, with names and origins") {
  Graph graph;
  const Node x = graph.input("x", type);
  const Node unused = graph.input("unused", type);
  exp(unused);
  const Node y = tanh(x);
  const Node b = graph.buffer("b", type);
  graph.update(b, b + y);
  const Node z = sqrt(y);
  const std::vector<Value> roots{z.value()};
  const PassGraph pruned = prune(graph, roots);
  CHECK(pruned.graph->size() == 5);
  CHECK(pruned.graph->updates().size() == 1);
  REQUIRE(pruned.roots.size() == 1);
  const NodeRecord& kept = pruned.graph->record(pruned.roots[0].node);
  CHECK(*kept.op == *graph.record(z.id()).op);
  CHECK(to_string(kept.origin) == to_string(graph.record(z.id()).origin));

  const PassGraph without = prune(graph, roots, false);
  CHECK(without.graph->size() == 3);
  CHECK(without.graph->updates().empty());
}

TEST_CASE("prune keeps what other ranks wait for") {
  Graph graph;
  const Node x = graph.input("x", type);
  all_reduce_sum(exp(x));
  const std::vector<Value> roots{tanh(x).value()};
  CHECK(prune(graph, roots).graph->size() == 4);
}

TEST_CASE("copy keeps everything, number for number") {
  Graph graph(Mode::inference);
  const Node x = graph.input("x", type);
  exp(x);
  const std::vector<Value> roots{tanh(x).value()};
  const PassGraph copied = copy(graph, roots);
  CHECK(copied.graph->size() == graph.size());
  CHECK(copied.roots == roots);
  CHECK(copied.graph->mode() == Mode::inference);
}

TEST_CASE("what is needed is what prune keeps") {
  Graph graph(Mode::inference);
  const Node x = graph.input("x", type);
  exp(x);
  const Node y = tanh(x);
  const std::vector<Value> roots{y.value()};
  CHECK(needed(graph, roots) == std::vector<Value>{x.value(), y.value()});
  CHECK(prune(graph, roots).graph->size() == 2);
  CHECK(prune(graph, roots).graph->mode() == Mode::inference);
  const Node b = graph.buffer("b", type);
  graph.update(b, y);
  CHECK(needed(graph, roots) == std::vector<Value>{x.value(), y.value(), b.value()});
  CHECK(needed(graph, roots, false).size() == 2);
}

}  // namespace plexaura::testing::prune_test
