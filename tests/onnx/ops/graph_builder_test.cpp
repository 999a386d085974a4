#include "onnx/ops/graph_builder.h"

#include <doctest/doctest.h>

#include "onnx/model.h"
#include "onnx/ops/call.h"

#include "core/base/error.h"
#include "tests/onnx/written_model.h"

namespace plexaura::onnx_graph_builder_test {

namespace {

// Builds the outputs of a file without inputs.
std::vector<Node> build(Graph& graph, const WrittenGraph& written, const onnx::BuildLimits& limits = {}) {
  const std::string bytes = written.model(13);
  const onnx::ModelProto model = onnx::parse_model(bytes);
  onnx::NamedNodes values{{"extents", graph.constant(Tensor::of({1}, std::vector<std::int64_t>{16}))}};
  return onnx::build_graph(graph, model.graph, values, {}, {"built.onnx", {}, model.opsets}, limits);
}

// A value of 64 bytes, from which more are made.
WrittenGraph filled(int more) {
  WrittenGraph graph;
  graph.node("ConstantOfShape", {"extents"}, {"v0"});
  for (int i = 0; i < more; ++i) graph.node("Neg", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
  graph.output("v" + std::to_string(more));
  return graph;
}

}  // namespace

TEST_CASE("values that depend only on constants are constants of the graph, within the limits") {
  Graph graph;
  CHECK(onnx::known_value(build(graph, filled(3))[0]) != nullptr);
  CHECK(onnx::known_value(build(graph, filled(3), {.bytes_of_value = 63})[0]) == nullptr);
  CHECK(onnx::known_value(build(graph, filled(3), {.bytes = 4 * 64})[0]) != nullptr);
  CHECK(onnx::known_value(build(graph, filled(3), {.bytes = 4 * 64 - 1})[0]) == nullptr);
}

TEST_CASE("a graph with more constants than the limit is an error") {
  Graph graph;
  CHECK_THROWS_WITH_AS(
      build(graph, filled(3), {.constant_bytes = 200}),
      "built.onnx: node 3 (Neg): the constants that are computed up to here have more than 200 bytes; "
      "store them in the file, or make them smaller",
      UserError);
}

TEST_CASE("a loop of too many nodes is an error that names the node and the iteration") {
  WrittenGraph body;
  for (const char* input : {"i", "on"}) body.untyped_input(input);
  body.node("Neg", {"i"}, {"minus"});
  body.node("Neg", {"minus"}, {"plus"});
  body.output("on");
  WrittenGraph graph;
  graph.node("Loop", {"extents", ""}, {}, {{"body", body.inner()}});  // 16 iterations
  Graph built;
  CHECK(build(built, graph, {.unrolled_nodes = 32}).empty());
  CHECK_THROWS_WITH_AS(
      build(built, graph, {.unrolled_nodes = 31}),
      "built.onnx: node 0 (Loop): iteration 15 of 16: the loops and branches of the file become 32 nodes up "
      "to here, and at most 31 are supported; export the model with fewer iterations",
      UserError);
}

TEST_CASE("a loop that passes on too many values is an error") {
  WrittenGraph body;
  for (const char* input : {"i", "on"}) body.untyped_input(input);
  body.output("on");
  for (int k = 0; k < 40; ++k) body.output("i");  // 2 inputs and 41 outputs
  WrittenGraph graph;
  graph.node("Loop", {"extents", ""}, {}, {{"body", body.inner()}});
  Graph built;
  CHECK(build(built, graph, {.unrolled_nodes = 22}).empty());
  CHECK_THROWS_WITH_AS(
      build(built, graph, {.unrolled_nodes = 21}),
      "built.onnx: node 0 (Loop): iteration 15 of 16: the loops and branches of the file read and make more "
      "than 672 values up to here, which is the limit; export the model with fewer iterations",
      UserError);
}

TEST_CASE("two values with one name are an error") {
  WrittenGraph written = filled(1);
  written.node("Neg", {"v0"}, {"v1"});
  Graph graph;
  CHECK_THROWS_WITH_AS(
      build(graph, written),
      "built.onnx: node 2 (Neg): there is a value 'v1' before it; each value needs a name of its own",
      UserError);
}

TEST_CASE("an op that only a later version supports is reported with its version") {
  WrittenGraph written;
  written.input("x", {2});
  written.node("Add", {"x", "x"}, {"y"});
  written.output("y");
  CHECK_THROWS_WITH_AS(onnx::FileModel(written.model(1), "old.onnx"),
                       "old.onnx: these ops are not supported: Add of version 1 (node 0); export it with a "
                       "newer version of the ops",
                       UserError);
  written.node("Sinus", {"x"}, {"z"});
  CHECK_THROWS_WITH_AS(
      onnx::FileModel(written.model(1), "old.onnx"),
      "old.onnx: these ops are not supported: Add of version 1 (node 0); Sinus (node 1); export it "
      "with a newer version of the ops, and replace those that are named without a version before "
      "that",
      UserError);
}

}  // namespace plexaura::onnx_graph_builder_test
