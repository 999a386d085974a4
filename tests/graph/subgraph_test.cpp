#include "core/graph/subgraph.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/graph/print.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace plexaura::testing::subgraph_test {

namespace {

const TensorType row{DType::float32, {4}};

std::vector<Value> values_of(std::initializer_list<Node> nodes) {
  std::vector<Value> values;
  for (const Node& node : nodes) values.push_back(node.value());
  return values;
}

// Returns a subgraph that computes a * b + `addend` from a and b. It is extracted from a graph with further
// nodes.
std::shared_ptr<const Subgraph> product(double addend, int nodes_before = 0) {
  Graph graph;
  const Node x = graph.input("x", row);
  for (int i = 0; i < nodes_before; ++i) exp(x);
  const Node a = exp(x);
  const Node b = tanh(a);
  const Node result = a * b + addend;
  exp(result);
  return extract(graph, values_of({result}), values_of({a, b}));
}

}  // namespace

TEST_CASE("a part of a graph is taken out between its operands and its outputs") {
  const auto part = product(2);
  CHECK(part->operands() == 2);
  CHECK(part->graph().size() == 5);
  CHECK(part->operand_type(1) == row);
  CHECK(part->output_type(0) == row);
  CHECK(part->reads(0));
  CHECK(part->reads(1));
}

TEST_CASE("subgraphs are equal by their structure") {
  CHECK(*product(2) == *product(2, 3));
  CHECK(product(2)->hash() == product(2, 3)->hash());
  CHECK_FALSE(*product(2) == *product(3));
  CHECK(product(2)->hash() != product(3)->hash());
  const auto part = product(2);
  CHECK_FALSE(*part == *part->with_outputs({{0, 0}}));
}

TEST_CASE("an operand may be an output, and need not be read") {
  Graph graph;
  const Node a = graph.input("a", row);
  const Node b = graph.input("b", row);
  const auto part = extract(graph, values_of({a}), values_of({b, a}));
  CHECK(part->outputs()[0] == Value{1, 0});
  CHECK_FALSE(part->reads(0));
  CHECK(part->reads(1));
}

TEST_CASE("a subgraph has no leaves but operands and constants") {
  Graph graph;
  const Node a = graph.input("a", row);
  const Node sum = a + graph.input("b", row);
  CHECK_THROWS_AS(extract(graph, values_of({sum}), values_of({a})), InternalError);
}

TEST_CASE("the nodes of a subgraph are appended to another graph") {
  const auto part = product(2);
  Graph graph;
  const Node x = graph.input("x", row);
  const auto values = append_subgraph(graph, *part, values_of({x, x}));
  const Value result = values[part->outputs()[0].node][0];
  CHECK(graph.record(result.node).op->name() == "add");
  CHECK(graph.record(graph.record(result.node).inputs[0].node).inputs == values_of({x, x}));
}

TEST_CASE("a description with a subgraph is compared by the subgraph's structure") {
  const auto described = [](double addend) { return Description().add("body", product(addend)); };
  CHECK(described(2) == described(2));
  CHECK_FALSE(described(2) == described(3));
  CHECK(described(2).hash() != described(3).hash());
  CHECK(to_string(described(2)).starts_with("body=5 nodes "));
}

}  // namespace plexaura::testing::subgraph_test
