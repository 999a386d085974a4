#include "core/graph/print.h"

#include <doctest/doctest.h>

#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"

namespace plexaura::testing::print_test {

namespace {

// Builds a layer of a YAML file with an update and a saved output.
void build(Graph& graph) {
  const Graph::WithOrigin place(graph, {"m.yaml", 3, 5, {}, false});
  const Node x = graph.input("x", {DType::float32, {2, 4}});
  const Node labels = graph.input("labels", {DType::int64, {2}});
  const Graph::Scope scope(graph, "fc");
  const Node weights = graph.parameter("fc.weight", {DType::float32, {3, 4}});
  const Node logits = matmul(x, weights, {.transpose_b = true});
  softmax_cross_entropy(logits, labels);
  const Node running = graph.buffer("fc.mean", {DType::float32, {}});
  graph.update(running, mean(logits));
}

}  // namespace

TEST_CASE("a graph prints one line a node") {
  Graph graph;
  build(graph);
  CHECK(to_text(graph) ==
        "%0 = input() {name=x, dtype=float32, shape=[2,4]} : float32[2,4]   # m.yaml:3:5\n"
        "%1 = input() {name=labels, dtype=int64, shape=[2]} : int64[2]   # m.yaml:3:5\n"
        "%2 = parameter() {name=fc.weight, dtype=float32, shape=[3,4]} : float32[3,4]   # m.yaml:3:5 (fc)\n"
        "%3 = matmul(%0, %2) {transpose_a=false, transpose_b=true} : float32[2,3]   # m.yaml:3:5 (fc)\n"
        "%4 = softmax_cross_entropy(%3, %1) {reduction=mean} : float32[], float32[2,3]   # m.yaml:3:5 (fc)\n"
        "%5 = buffer() {name=fc.mean, dtype=float32, shape=[]} : float32[]   # m.yaml:3:5 (fc)\n"
        "%6 = mean(%3) {axes=[0,1], keepdims=false} : float32[]   # m.yaml:3:5 (fc)\n"
        "update(%5, %6)\n");
  CHECK(name_of(graph, 3) == "matmul %3 of m.yaml:3:5 (fc)");
}

TEST_CASE("graphviz has scopes as clusters and updates dotted") {
  Graph graph;
  build(graph);
  const std::string dot = to_dot(graph);
  for (const char* part : {"digraph plexaura {", "subgraph \"cluster_fc\"", "n0 -> n3;",
                           "n6 -> n5 [style=dotted];", "fc.weight", "shape=box"})
    CHECK_MESSAGE(dot.find(part) != std::string::npos, part);
}

TEST_CASE("an edge to a saved output is dashed") {
  Graph graph;
  const Node logits = graph.input("x", {DType::float32, {2, 4}});
  const Node labels = graph.input("labels", {DType::int64, {2}});
  const Node loss = softmax_cross_entropy(logits, labels);
  sum(Node(graph, {loss.id(), 1}));
  CHECK(to_dot(graph).find("n2 -> n3 [style=dashed];") != std::string::npos);
}

}  // namespace plexaura::testing::print_test
