#include "core/graph/uses.h"

#include <doctest/doctest.h>

#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace plexaura::testing::uses_test {

TEST_CASE("uses tells who reads a value, and what is seen from outside") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  const Node a = exp(x);
  const Node b = tanh(a);
  const Node c = a * b;
  const Node d = b + b;
  const Node buffer = graph.buffer("buffer", {DType::float32, {4}});
  graph.update(buffer, d);
  const std::vector<Value> kept{c.value(), d.value()};
  const Uses uses(graph, kept);
  CHECK(uses.readers(a.value()) == std::vector<NodeId>{b.id(), c.id()});
  CHECK(uses.readers(c.value()).empty());
  CHECK(uses.kept(c.value()));
  CHECK(uses.kept(d.value()));
  CHECK(!uses.kept(a.value()));
  CHECK(uses.only_read_by(x.value(), a.id()));
  CHECK(!uses.only_read_by(a.value(), b.id()));
  CHECK(!uses.only_read_by(c.value(), b.id()));
}

TEST_CASE("nodes that values need are those on which they depend, and their own") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  const Node unused = graph.input("unused", {DType::float32, {4}});
  const Node a = exp(x);
  tanh(a);
  const Node c = a + x;
  const std::vector<Value> values{c.value()};
  std::vector<bool> expected(graph.size(), false);
  for (const Node& node : {x, a, c}) expected[node.id()] = true;
  CHECK(nodes_needed(graph, values) == expected);
  CHECK(nodes_needed(graph, {}) == std::vector<bool>(graph.size(), false));
  CHECK(!expected[unused.id()]);
}

}  // namespace plexaura::testing::uses_test
