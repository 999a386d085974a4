#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/ops/reduce.h"
#include "core/vm/function.h"
#include "tests/onnx/one_node.h"

namespace plexaura::onnx_control_flow_test {

namespace {

constexpr std::int64_t boolean = 9;
constexpr std::int64_t integer = 7;

std::vector<Tensor> run(const WrittenGraph& graph, const std::map<std::string, Tensor>& inputs,
                        std::int64_t version = 13) {
  onnx::FileModel model(graph.model(version), "flow.onnx");
  ParameterStore store = model.make_store();
  onnx::Runner runner(model, store, testing::test_backend());
  return runner(inputs);
}

std::string error_of(const WrittenGraph& graph, const std::map<std::string, Tensor>& inputs,
                     std::int64_t version = 13) {
  try {
    run(graph, inputs, version);
    return {};
  } catch (const UserError& error) {
    return error.what();
  }
}

// The body of a loop that multiplies its value h by w, and stacks h and the number of the iteration.
WrittenGraph multiplying_body() {
  WrittenGraph body;
  body.input("i", {}, integer);
  body.input("on", {}, boolean);
  body.untyped_input("h");
  body.node("Identity", {"on"}, {"still_on"});
  body.node("Mul", {"h", "w"}, {"next"});
  body.node("Identity", {"i"}, {"number"});
  for (const char* output : {"still_on", "next", "next", "number"}) body.output(output);
  return body;
}

// A model that runs a body `count` times, from x on. The body reads w of the graph around it.
WrittenGraph looping(const WrittenGraph& body) {
  WrittenGraph graph;
  graph.initialiser("w", {1}, {2});
  graph.input("count", {}, integer);
  graph.input("x", {1});
  graph.node("Loop", {"count", "", "x"}, {"last", "all", "numbers"}, {{"body", body.inner()}});
  for (const char* output : {"last", "all", "numbers"}) graph.output(output);
  return graph;
}

Tensor whole(std::int64_t value) { return integers({}, {value}); }

// A loop that adds 1 to x while it is below 3; `count` iterations at most, or any number if it is empty.
WrittenGraph while_below_three(const std::string& count) {
  WrittenGraph body;
  body.input("i", {}, integer);
  body.input("on", {}, boolean);
  body.input("h", {1});
  body.node("Add", {"h", "one"}, {"next"});
  body.node("Less", {"next", "three"}, {"below"});
  body.output("below");
  body.output("next");
  WrittenGraph graph;
  graph.initialiser("one", {1}, {1});
  graph.initialiser("three", {1}, {3});
  graph.input("x", {1});
  if (!count.empty()) graph.input(count, {}, integer);
  graph.node("Loop", {count, "", "x"}, {"y"}, {{"body", body.inner()}});
  graph.output("y");
  return graph;
}

// A model that adds b to x if `condition` is true, and else negates x. Both values have a name within the branches.
WrittenGraph branching() {
  WrittenGraph adds;
  adds.initialiser("b", {1}, {10});
  adds.node("Add", {"x", "b"}, {"result"});
  adds.output("result");
  WrittenGraph negates;
  negates.node("Neg", {"x"}, {"result"});
  negates.output("result");
  WrittenGraph graph;
  graph.input("condition", {}, boolean);
  graph.input("x", {1});
  graph.node("If", {"condition"}, {"y"}, {{"then_branch", adds.inner()}, {"else_branch", negates.inner()}});
  graph.output("y");
  return graph;
}

}  // namespace

TEST_CASE("a node If computes the branch of its condition, which reads values of the graph around it") {
  const Tensor x = floats({1}, {1});
  CHECK(run(branching(), {{"condition", Tensor::scalar(true)}, {"x", x}})[0] == floats({1}, {11}));
  CHECK(run(branching(), {{"condition", Tensor::scalar(false)}, {"x", x}})[0] == floats({1}, {-1}));
}

TEST_CASE("a weight within a branch is a parameter with a gradient") {
  onnx::FileModel model(branching().model(13), "flow.onnx");
  CHECK(model.parameter_names() == std::vector<std::string>{"b"});
  ParameterStore store = model.make_store();
  Graph graph;
  const Node y = model(graph, {{"condition", graph.constant(Tensor::scalar(true))},
                               {"x", graph.constant(floats({1}, {1}))}})[0];
  const Node slope = gradients(sum(y), {graph.parameter("b", {DType::float32, {1}})})[0];
  CHECK(evaluate(slope, {}, testing::test_backend(), &store) == floats({1}, {1}));
}

TEST_CASE("a condition that is not known when the graph is built is an error") {
  onnx::FileModel model(branching().model(13), "flow.onnx");
  model.make_store();
  Graph graph;
  CHECK_THROWS_WITH_AS(
      model(graph, {{"condition", graph.input("condition", {DType::boolean, {}})},
                    {"x", graph.input("x", {DType::float32, {1}})}}),
      "flow.onnx: node 0 (If): input 0 ('condition') must be known when the graph is built, but it is "
      "computed when the graph runs",
      UserError);
}

TEST_CASE("a loop passes on its values, stacks others, and reads values of the graph around it") {
  const auto results = run(looping(multiplying_body()), {{"count", whole(3)}, {"x", floats({1}, {1})}});
  CHECK(results[0] == floats({1}, {8}));
  CHECK(results[1] == floats({3, 1}, {2, 4, 8}));
  CHECK(results[2] == integers({3}, {0, 1, 2}));
}

TEST_CASE("the iterations of a loop share the parameters of its body") {
  WrittenGraph body = multiplying_body();
  body.initialiser("w", {1}, {3});  // hides the value w of the graph around it
  onnx::FileModel model(looping(body).model(13), "flow.onnx");
  CHECK(model.parameter_names() == std::vector<std::string>{"w", "w_2"});
  ParameterStore store = model.make_store();
  Graph graph;
  const Node last =
      model(graph, {{"count", graph.constant(whole(2))}, {"x", graph.constant(floats({1}, {1}))}})[0];
  const Node slope = gradients(sum(last), {graph.parameter("w_2", {DType::float32, {1}})})[0];
  CHECK(evaluate(slope, {}, testing::test_backend(), &store) == floats({1}, {6}));  // of w^2 at 3
}

TEST_CASE("the iterations of a loop share the constants of its body") {
  WrittenGraph body;
  body.input("i", {}, integer);
  body.input("on", {}, boolean);
  body.input("h", {2});
  body.node("Constant", {}, {"c"}, {{"value_ints", WrittenGraph::Extents{1, 2}}});
  body.node("Cast", {"c"}, {"real"}, {{"to", 1}});
  body.node("Add", {"h", "real"}, {"next"});
  body.output("on");
  body.output("next");
  WrittenGraph graph;
  graph.input("x", {2});
  graph.initialiser("count", {}, std::vector<std::int64_t>{5});
  graph.node("Loop", {"count", "", "x"}, {"y"}, {{"body", body.inner()}});
  graph.output("y");
  onnx::FileModel model(graph.model(13), "flow.onnx");
  model.make_store();
  Graph built;
  model(built.input("x", {DType::float32, {2}}));
  int shared = 0;
  for (std::size_t id = 0; id < built.size(); ++id) {
    const Tensor* value = onnx::known_value(Node(built, {static_cast<NodeId>(id), 0}));
    shared += value != nullptr && *value == integers({2}, {1, 2}) ? 1 : 0;
  }
  CHECK(shared == 1);
}

TEST_CASE("a loop without iterations returns its start and stacks nothing") {
  WrittenGraph body = multiplying_body();
  const auto results = run(looping(body), {{"count", whole(0)}, {"x", floats({1}, {1})}});
  CHECK(results[0] == floats({1}, {1}));
  CHECK(results[1].shape() == Shape{0});
}

TEST_CASE("a loop without iterations needs the shape of what it would stack") {
  WrittenGraph body;
  body.input("i", {}, integer);
  body.input("on", {}, boolean);
  body.output("on");
  body.output("open", {-1});
  WrittenGraph graph;
  graph.initialiser("count", {}, std::vector<std::int64_t>{-1});
  graph.node("Loop", {"count", ""}, {"y"}, {{"body", body.inner()}});
  graph.output("y");
  CHECK(error_of(graph, {}) ==
        "flow.onnx: node 0 (Loop): there are no iterations, so the file must give the shape of the body's "
        "output 'open'");
}

TEST_CASE("a loop ends when its condition becomes false") {
  CHECK(run(while_below_three(""), {{"x", floats({1}, {0.5F})}})[0] == floats({1}, {3.5F}));
  const auto limited = [&](std::int64_t count) {
    return run(while_below_three("count"), {{"x", floats({1}, {0.5F})}, {"count", whole(count)}})[0];
  };
  CHECK(limited(2) == floats({1}, {2.5F}));
  CHECK(limited(9) == floats({1}, {3.5F}));
}

TEST_CASE("a body that does not fit its loop is an error") {
  const std::map<std::string, Tensor> inputs{{"count", whole(2)}, {"x", floats({1}, {1})}};
  WrittenGraph narrow;
  narrow.input("i", {}, integer);
  narrow.output("i");
  CHECK(error_of(looping(narrow), inputs) ==
        "flow.onnx: node 0 (Loop): its body has 1 outputs, but needs at least 2");
  narrow.output("i");
  CHECK(error_of(looping(narrow), inputs) ==
        "flow.onnx: node 0 (Loop): iteration 0 of 2: it has 1 inputs, but its node passes 3");
  narrow.input("on", {}, boolean);
  narrow.input("h", {1}, integer);
  CHECK(error_of(looping(narrow), inputs) ==
        "flow.onnx: node 0 (Loop): iteration 0 of 2: its input 'h' must be int64, not float32");
  WrittenGraph graph;
  graph.node("Loop", {"", ""}, {"y"});
  graph.output("y");
  CHECK(error_of(graph, {}) == "flow.onnx: node 0 (Loop): its attribute 'body', a graph, is missing");
}

TEST_CASE("a value of a loop keeps its dtype") {
  WrittenGraph body;
  body.input("i", {}, integer);
  body.input("on", {}, boolean);
  body.untyped_input("h");
  body.output("on");
  body.output("i");
  CHECK(error_of(looping(body), {{"count", whole(1)}, {"x", floats({1}, {1})}}) ==
        "flow.onnx: node 0 (Loop): iteration 0 of 1: its output 'i' must be float32 as in the iteration "
        "before, "
        "not int64");
}

TEST_CASE("an error within a loop names the iteration and the node of the body") {
  WrittenGraph body = multiplying_body();
  body.node("Concat", {"i", "i"}, {"joined"}, {{"axis", 0}});
  const std::string text = error_of(looping(body), {{"count", whole(2)}, {"x", floats({1}, {1})}});
  CHECK(text.starts_with("flow.onnx: node 0 (Loop): iteration 0 of 2: node 3 (Concat): "));
}

TEST_CASE("iterations whose values differ in shape cannot be stacked") {
  WrittenGraph body;
  body.input("i", {}, integer);
  body.input("on", {}, boolean);
  body.untyped_input("h");
  body.node("Concat", {"h", "h"}, {"twice"}, {{"axis", 0}});
  for (const char* output : {"on", "twice", "twice", "i"}) body.output(output);
  CHECK(error_of(looping(body), {{"count", whole(2)}, {"x", floats({1}, {1})}}) ==
        "flow.onnx: node 0 (Loop): its iterations make values of different types, float32[2] and "
        "float32[4]; they must be equal to be stacked");
}

TEST_CASE("Scan reads and stacks along the axes and in the directions that it names") {
  WrittenGraph body;
  body.input("sum", {2});
  body.input("element", {2});
  body.node("Add", {"sum", "element"}, {"next"});
  body.node("Identity", {"next"}, {"stacked"});
  body.output("next");
  body.output("stacked");
  WrittenGraph graph;
  graph.input("start", {2});
  graph.input("x", {2, 3});
  using Extents = WrittenGraph::Extents;
  graph.node("Scan", {"start", "x"}, {"last", "all"},
             {{"body", body.inner()},
              {"num_scan_inputs", 1},
              {"scan_input_axes", Extents{1}},
              {"scan_input_directions", Extents{1}},
              {"scan_output_axes", Extents{-1}},
              {"scan_output_directions", Extents{1}}});
  graph.output("last");
  graph.output("all");
  const auto results =
      run(graph, {{"start", floats({2}, {0, 0})}, {"x", floats({2, 3}, {1, 2, 3, 10, 20, 30})}});
  CHECK(results[0] == floats({2}, {6, 60}));
  CHECK(results[1] == floats({2, 3}, {6, 5, 3, 60, 50, 30}));
}

TEST_CASE("sequences of different lengths are an error") {
  WrittenGraph body;
  body.input("a", {});
  body.input("b", {});
  body.node("Add", {"a", "b"}, {"c"});
  body.output("c");
  const OneNode scan("Scan", 9, {{"body", body.inner()}, {"num_scan_inputs", 2}});
  CHECK(scan({floats({2}, {1, 2}), floats({2}, {3, 4})})[0] == floats({2}, {4, 6}));
  CHECK(scan.error({floats({2}, {1, 2}), floats({3}, {3, 4, 5})}) ==
        "one.onnx: node 0 (Scan): its sequences have 2 and 3 elements; they must be equally long");
}

TEST_CASE("version 8 of Scan computes each sample on its own") {
  WrittenGraph body;
  body.input("sum", {});
  body.input("element", {});
  body.node("Add", {"sum", "element"}, {"next"});
  body.output("next");
  body.output("next");
  const OneNode scan("Scan", 8, {{"body", body.inner()}, {"num_scan_inputs", 1}}, 2);
  const auto results = scan({floats({2}, {0, 100}), floats({2, 2}, {1, 2, 3, 4})}, {0});
  CHECK(results[0] == floats({2}, {3, 107}));
  CHECK(results[1] == floats({2, 2}, {1, 3, 103, 107}));
  CHECK(scan.error({floats({1}, {0}), floats({2, 2}, {1, 2, 3, 4})}, {0}) ==
        "one.onnx: node 0 (Scan): its input 2 has the shape [2,2]; axis 0, the samples, must have the "
        "extent 1");
}

}  // namespace plexaura::onnx_control_flow_test
