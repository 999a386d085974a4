#include "onnx/ops/uses.h"

#include <doctest/doctest.h>
#include <map>

#include "tests/onnx/one_node.h"

namespace plexaura::onnx_uses_test {

namespace {

// A model with x [1, 2, 2] and a weight `w` of two elements, to which the caller adds the nodes.
WrittenGraph with_weight() {
  WrittenGraph graph;
  graph.initialiser("w", {2}, {1, 2});
  graph.input("x", {1, 2, 2});
  graph.output("y");
  return graph;
}

// Returns "parameter", "buffer" or "constant", as the file's value w is used.
std::string kind_of_weight(const WrittenGraph& graph) {
  onnx::FileModel model(graph.model(13), "uses.onnx");
  const ParameterStore store = model.make_store();
  for (const auto& parameter : store.specs())
    if (parameter.name == "w") return parameter.role == ParameterRole::buffer ? "buffer" : "parameter";
  return "constant";
}

}  // namespace

TEST_CASE("a weight is a parameter if an output depends on it through other nodes") {
  WrittenGraph graph = with_weight();
  graph.node("Cast", {"w"}, {"a"}, {{"to", 1}});
  graph.node("Identity", {"a"}, {"b"});
  graph.node("Mul", {"x", "b"}, {"y"});
  CHECK(kind_of_weight(graph) == "parameter");
}

TEST_CASE("a weight that no output depends on is no parameter") {
  WrittenGraph graph = with_weight();
  graph.node("Identity", {"w"}, {"a"});
  graph.node("Relu", {"x"}, {"y"});
  CHECK(kind_of_weight(graph) == "constant");
}

TEST_CASE("a number of which only the shape counts is no parameter") {
  WrittenGraph graph = with_weight();
  graph.node("Identity", {"w"}, {"a"});
  graph.node("Shape", {"a"}, {"extents"});
  graph.node("Expand", {"x", "extents"}, {"y"});
  CHECK(kind_of_weight(graph) == "constant");
}

TEST_CASE("numbers that the graph needs early are no parameters, also through other nodes") {
  WrittenGraph graph = with_weight();
  graph.initialiser("one", {1}, {1});
  graph.node("Identity", {"w"}, {"a"});
  graph.node("Concat", {"one", "a"}, {"scales"}, {{"axis", 0}});
  graph.node("Mul", {"x", "w"}, {"scaled"});
  graph.node("Resize", {"scaled", "", "scales"}, {"y"});
  CHECK(kind_of_weight(graph) == "constant");
  onnx::FileModel model(graph.model(13), "uses.onnx");
  model.make_store();
  Graph built;
  CHECK(model(built.input("x", {DType::float32, {1, 2, 2}})).shape() == Shape{1, 2, 4});
}

TEST_CASE("running moments are buffers, also through other nodes") {
  WrittenGraph graph = with_weight();
  graph.initialiser("scale", {2}, {1, 1});
  graph.initialiser("variance", {2}, {1, 1});
  graph.node("Identity", {"w"}, {"mean"});
  graph.node("BatchNormalization", {"x", "scale", "scale", "mean", "variance"}, {"y"});
  CHECK(kind_of_weight(graph) == "buffer");
}

TEST_CASE("a number that a later iteration of a loop needs early is no parameter") {
  WrittenGraph body;
  for (const char* input : {"i", "on", "first", "second"}) body.untyped_input(input);
  body.node("Expand", {"x", "first"}, {"expanded"});
  for (const char* output : {"on", "second", "second"})
    body.output(output);  // the second value becomes the first
  WrittenGraph graph = with_weight();
  graph.initialiser("count", {}, std::vector<std::int64_t>{2});
  graph.initialiser("extents", {2}, {1, 1});
  graph.node("Loop", {"count", "", "extents", "w"}, {"a", "b"}, {{"body", body.inner()}});
  graph.node("Mul", {"x", "b"}, {"y"});
  CHECK(kind_of_weight(graph) == "constant");
}

TEST_CASE("a weight that only a loop's body uses is a parameter") {
  WrittenGraph body;
  for (const char* input : {"i", "on", "h"}) body.untyped_input(input);
  body.node("Mul", {"h", "w"}, {"next"});
  body.output("on");
  body.output("next");
  WrittenGraph graph = with_weight();
  graph.initialiser("count", {}, std::vector<std::int64_t>{2});
  graph.node("Loop", {"count", "", "x"}, {"y"}, {{"body", body.inner()}});
  CHECK(kind_of_weight(graph) == "parameter");
}

TEST_CASE("scales of quantised ops and rounded weights are no parameters") {
  WrittenGraph scales = with_weight();
  scales.initialiser("q", {2}, std::vector<std::uint8_t>{1, 2});
  scales.node("DequantizeLinear", {"q", "w", "q"}, {"a"}, {{"axis", 0}});
  scales.node("Mul", {"x", "a"}, {"y"});
  CHECK(kind_of_weight(scales) == "constant");

  WrittenGraph product = with_weight();
  product.initialiser("a", {2, 1}, std::vector<std::uint8_t>{1, 2});
  product.initialiser("b", {1, 1}, std::vector<std::uint8_t>{1});
  product.initialiser("s", {}, {1});
  product.initialiser("zeros", {2}, std::vector<std::uint8_t>{0, 0});
  product.initialiser("z", {}, std::vector<std::uint8_t>{0});
  product.node("QLinearMatMul", {"a", "w", "zeros", "b", "s", "z", "s", "z"}, {"y"});
  CHECK(kind_of_weight(product) == "constant");

  WrittenGraph rounded = with_weight();
  rounded.initialiser("s", {}, {1});
  rounded.initialiser("z", {}, std::vector<std::uint8_t>{0});
  rounded.node("QuantizeLinear", {"w", "s", "z"}, {"a"});
  rounded.node("DequantizeLinear", {"a", "s", "z"}, {"b"});
  rounded.node("Mul", {"x", "b"}, {"y"});
  CHECK(kind_of_weight(rounded) == "constant");
}

}  // namespace plexaura::onnx_uses_test
