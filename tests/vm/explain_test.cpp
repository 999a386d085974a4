#include "core/vm/explain.h"

#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/compile/compile.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"

namespace plexaura::testing::explain_test {

namespace {

const Origin line{"m.yaml", 3, 5, {}, false};

void check_contains(const std::string& text, const std::string& part) {
  CHECK_MESSAGE(text.find(part) != std::string::npos, text);
}

}  // namespace

TEST_CASE("a node is explained by its op, inputs, place and readers") {
  Graph graph;
  const Graph::WithOrigin place(graph, line);
  const Node x = graph.input("x", {DType::float32, {2, 4}});
  const Graph::Scope scope(graph, "fc");
  const Node weights = graph.parameter("fc.weight", {DType::float32, {3, 4}});
  const Node y = matmul(x, weights, {.transpose_b = true});
  exp(y);
  tanh(y);
  CHECK(
      explain(y) ==
      "%2 is a matmul with transpose_a=false, transpose_b=true. It computes float32[2,3] from %0 (input x, "
      "float32[2,4]) and %1 (parameter fc.weight, float32[3,4]). It was made at m.yaml:3:5 (fc). It is read "
      "by %3 (exp) and %4 (tanh).");
  CHECK(explain(x) ==
        "%0 is an input x of type float32[2,4]. It was made at m.yaml:3:5. It is read by %2 (matmul).");
  CHECK_THROWS_AS(explain(Node()), UserError);
}

TEST_CASE("outputs that are saved and updates are explained") {
  Graph graph;
  const Node logits = graph.input("x", {DType::float32, {2, 4}});
  const Node labels = graph.input("labels", {DType::int64, {2}});
  const Node loss = softmax_cross_entropy(logits, labels);
  const Node running = graph.buffer("running", {DType::float32, {}});
  graph.update(running, loss);
  check_contains(explain(loss),
                 "Output 0 is read by no node. Output 1 is saved for the gradient, and read by "
                 "no node. After a run it is the value of %3 (buffer running).");
  check_contains(explain(running), "After a run it has the value of %2.");
}

TEST_CASE("the instruction of a node is explained") {
  const auto backend = open_backend("portable");
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  const Node y = tanh(x);
  const Node z = y * x;
  const auto program = compile(graph, std::vector<ProgramOutput>{{.node = z}}, *backend);
  check_contains(explain(y, *program),
                 " In the program on portable, the kernel portable computes it, as instruction 0.");
  check_contains(explain(z, *program), " computes it, as instruction 1.");
  check_contains(explain(x, *program),
                 " The program on portable reads it where it lies, without an instruction.");
}

TEST_CASE("the other nodes of a region are named") {
  const auto backend = open_backend("cpu");
  Graph graph(Mode::train);
  const Node x = graph.input("x", {DType::float32, {8, 16, 8, 8}});
  const Node scale = graph.parameter("scale", {DType::float32, {16}});
  const Node shift = graph.parameter("shift", {DType::float32, {16}});
  const Node y = batch_norm(x, scale, shift).y;
  const auto program = compile(graph, std::vector<ProgramOutput>{{.node = y}}, *backend);
  check_contains(explain(y, *program), "together with moments");
}

TEST_CASE("a node that the passes have removed or merged is reported") {
  const auto backend = open_backend("portable");
  Graph graph;
  const Graph::WithOrigin place(graph, line);
  const Node x = graph.input("x", {DType::float32, {4}});
  const Node unread = exp(x);
  const Node a = tanh(x);
  const Node b = tanh(x);
  const Node y = a * b;
  const auto program = compile(graph, std::vector<ProgramOutput>{{.node = y}}, *backend);
  check_contains(explain(unread, *program), " The program on portable has no such node: no output needs it");
  check_contains(
      explain(b, *program),
      " The graph has 2 such nodes of this place, and the program on portable has 1, so it is unknown");
}

}  // namespace plexaura::testing::explain_test
