#include "onnx/format/inline_functions.h"

#include <doctest/doctest.h>

#include "onnx/runner.h"

#include "core/base/error.h"
#include "tests/onnx/written_model.h"
#include "tests/support/backend.h"

namespace plexaura::inline_functions_test {

namespace {

using Functions = std::vector<std::string>;

Tensor floats(const std::vector<float>& values) {
  return Tensor::of({static_cast<std::int64_t>(values.size())}, values);
}

std::vector<Tensor> outputs_of(const WrittenGraph& graph, const Functions& functions,
                               const std::map<std::string, Tensor>& inputs, std::int64_t version = 18) {
  onnx::FileModel model(graph.model(version, functions), "calls.onnx");
  ParameterStore store = model.make_store();
  return onnx::Runner(model, store, testing::test_backend())(inputs);
}

std::string error_of(const WrittenGraph& graph, const Functions& functions) {
  try {
    onnx::FileModel(graph.model(18, functions), "calls.onnx");
    return {};
  } catch (const UserError& error) {
    return error.what();
  }
}

// A graph that passes its input x to a function, and returns its output y.
WrittenGraph call_of(const std::string& op, const WrittenGraph::Attributes& attributes = {}) {
  WrittenGraph graph;
  graph.input("x", {2});
  graph.node(op, {"x"}, {"y"}, attributes);
  graph.output("y");
  return graph;
}

// y = relu(x).
std::string relu_function(const std::string& name) {
  WrittenGraph body;
  body.node("Relu", {"x"}, {"y"});
  return body.function(name, {"x"}, {"y"}, 18);
}

}  // namespace

TEST_CASE("a node of a function has the attributes of the call, or their defaults") {
  WrittenGraph body;
  body.node("LeakyRelu", {"x"}, {"h"}, {{"alpha", WrittenGraph::Reference{"slope"}}});
  body.node("Concat", {"h", "h"}, {"y"}, {{"axis", WrittenGraph::Reference{"axis"}}});
  const std::string function = body.function("Leaky", {"x"}, {"y"}, 18, {"axis"}, {{"slope", 0.5F}});
  const std::map<std::string, Tensor> inputs{{"x", floats({-4, 3})}};
  CHECK(outputs_of(call_of("f:Leaky", {{"axis", 0}}), {function}, inputs)[0] == floats({-2, 3, -2, 3}));
  CHECK(outputs_of(call_of("f:Leaky", {{"axis", 0}, {"slope", 0.25F}}), {function}, inputs)[0] ==
        floats({-1, 3, -1, 3}));
}

TEST_CASE("an attribute that neither the call nor a default has is left out") {
  WrittenGraph body;
  body.node("LeakyRelu", {"x"}, {"y"}, {{"alpha", WrittenGraph::Reference{"slope"}}});
  const std::string function = body.function("Leaky", {"x"}, {"y"}, 18, {"slope"});
  CHECK(outputs_of(call_of("f:Leaky"), {function}, {{"x", floats({-100, 3})}})[0] == floats({-1, 3}));
}

TEST_CASE("the nodes of a function have the version of its ops, not that of the model") {
  WrittenGraph body;  // from version 11 on the padding is an input
  body.node("Pad", {"x"}, {"y"}, {{"pads", WrittenGraph::Extents{1, 0}}});
  CHECK(outputs_of(call_of("f:Pad"), {body.function("Pad", {"x"}, {"y"}, 10)}, {{"x", floats({1, 2})}})[0] ==
        floats({0, 1, 2}));
}

TEST_CASE("values within functions collide neither with each other nor with those of the model") {
  WrittenGraph inner;
  inner.node("Neg", {"x"}, {"h"});
  inner.node("Add", {"h", "w"}, {"y"});
  WrittenGraph outer;
  outer.node("f:Inner", {"h", "x"}, {"y"});
  outer.node("f:Inner", {"y", "x"}, {"w"});
  WrittenGraph graph;
  graph.input("x", {2});
  graph.input("h", {2});
  graph.node("f:Outer", {"x", "h"}, {"0/0/h"});
  graph.node("Add", {"0/0/h", "h"}, {"0/y"});
  graph.output("0/y");
  const Functions functions{inner.function("Inner", {"x", "w"}, {"y"}, 18),
                            outer.function("Outer", {"x", "h"}, {"w"}, 18)};
  // Outer: w = -(-h + x) + x = h; the model adds h.
  CHECK(outputs_of(graph, functions, {{"x", floats({1, 2})}, {"h", floats({10, 20})}})[0] ==
        floats({20, 40}));
}

TEST_CASE("inputs that a call leaves out are left out by the nodes of the function") {
  WrittenGraph body;
  body.node("Clip", {"x", "low", "high"}, {"y"});
  WrittenGraph graph;
  graph.input("x", {3});
  graph.initialiser("one", {}, {1});
  graph.node("f:Bound", {"x", "", "one"}, {"a"});
  graph.node("f:Bound", {"x", "one"}, {"b"});
  graph.node("f:Bound", {"x"}, {"c"});
  for (const char* output : {"a", "b", "c"}) graph.output(output);
  const auto outputs = outputs_of(graph, {body.function("Bound", {"x", "low", "high"}, {"y"}, 18)},
                                  {{"x", floats({0, 1, 2})}});
  CHECK(outputs[0] == floats({0, 1, 1}));
  CHECK(outputs[1] == floats({1, 1, 2}));
  CHECK(outputs[2] == floats({0, 1, 2}));
}

TEST_CASE("a function may return an input, and a value twice, and a call may read a few outputs") {
  WrittenGraph body;
  body.node("Neg", {"x"}, {"y"});
  WrittenGraph graph;
  graph.input("x", {2});
  graph.node("f:Both", {"x"}, {"a", "", "b"});
  graph.node("f:Both", {"x"}, {"", "c"});
  for (const char* output : {"a", "b", "c"}) graph.output(output);
  const auto outputs =
      outputs_of(graph, {body.function("Both", {"x"}, {"y", "x", "y"}, 18)}, {{"x", floats({1, 2})}});
  CHECK(outputs[0] == floats({-1, -2}));
  CHECK(outputs[1] == floats({-1, -2}));
  CHECK(outputs[2] == floats({1, 2}));
}

TEST_CASE("a graph within a function reads values and calls functions") {
  WrittenGraph then_branch;
  then_branch.node("f:Relu", {"h"}, {"r"});
  then_branch.output("r");
  WrittenGraph else_branch;
  else_branch.node("Identity", {"h"}, {"r"});
  else_branch.output("r");
  WrittenGraph body;
  body.node("Neg", {"x"}, {"h"});
  body.node("If", {"on"}, {"y"},
            {{"then_branch", then_branch.inner()}, {"else_branch", else_branch.inner()}});
  WrittenGraph graph;
  graph.input("x", {2});
  graph.input("on", {}, 9);
  graph.node("f:Choose", {"x", "on"}, {"y"});
  graph.output("y");
  const Functions functions{body.function("Choose", {"x", "on"}, {"y"}, 18), relu_function("Relu")};
  const Tensor x = floats({1, -2});
  CHECK(outputs_of(graph, functions, {{"x", x}, {"on", Tensor::scalar(true)}})[0] == floats({0, 2}));
  CHECK(outputs_of(graph, functions, {{"x", x}, {"on", Tensor::scalar(false)}})[0] == floats({-1, 2}));
}

TEST_CASE("initialisers that a function gets are parameters, and all its calls share its constants") {
  WrittenGraph body;
  body.node("Constant", {}, {"two"}, {{"value_float", 2.0F}});
  body.node("Mul", {"x", "w"}, {"h"});
  body.node("Mul", {"h", "two"}, {"y"});
  WrittenGraph graph;
  graph.input("x", {2});
  graph.initialiser("w", {2}, {3, 4});
  graph.node("f:Scale", {"x", "w"}, {"h"});
  graph.node("f:Scale", {"h", "w"}, {"y"});
  graph.output("y");
  const Functions functions{body.function("Scale", {"x", "w"}, {"y"}, 18)};
  onnx::FileModel model(graph.model(18, functions), "calls.onnx");
  CHECK(model.parameter_names() == std::vector<std::string>{"w"});
  CHECK(outputs_of(graph, functions, {{"x", floats({1, 1})}})[0] == floats({36, 64}));
}

TEST_CASE("copies of a node share its tensors") {
  onnx::ModelProto model;
  onnx::FunctionProto function;
  function.name = "Two";
  function.outputs = {"y"};
  function.opsets = {{"", 18}};
  onnx::AttributeProto value;
  value.name = "value";
  value.tensor = std::make_shared<const onnx::TensorProto>();
  function.nodes.push_back(
      {.name = "", .op = "Constant", .domain = "", .inputs = {}, .outputs = {"y"}, .attributes = {value}});
  for (const char* output : {"a", "b"})
    model.graph.nodes.push_back(
        {.name = "", .op = "Two", .domain = "", .inputs = {}, .outputs = {output}, .attributes = {}});
  model.functions = {function};
  onnx::inline_functions(model);
  CHECK(model.functions.empty());
  const std::vector<onnx::NodeProto>& nodes = model.graph.nodes;
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].name == "0/0");
  CHECK(nodes[1].name == "1/0");
  CHECK(nodes[1].outputs == std::vector<std::string>{"b"});
  CHECK(nodes[0].attributes[0].tensor == nodes[1].attributes[0].tensor);
}

TEST_CASE("a call that does not fit its function is an error") {
  const Functions relu{relu_function("Relu")};
  CHECK(error_of(call_of("f:Relu", {{"slope", 1.0F}}), relu) ==
        "calls.onnx: node '0' (Relu): the function 'f.Relu' has no attribute 'slope'");
  WrittenGraph graph;
  graph.node("f:Relu", {"x", "x"}, {"y"});
  CHECK(error_of(graph, relu) ==
        "calls.onnx: node '0' (Relu): it has 2 inputs, but the function 'f.Relu' has 1");
  WrittenGraph other;
  other.node("f:Relu", {"x"}, {"y", "z"});
  CHECK(error_of(other, relu) ==
        "calls.onnx: node '0' (Relu): it has 2 outputs, but the function 'f.Relu' has 1");
}

TEST_CASE("a function that calls itself is an error, also through another one") {
  WrittenGraph a;
  a.node("f:B", {"x"}, {"y"});
  WrittenGraph b;
  b.node("f:A", {"x"}, {"y"});
  const Functions functions{a.function("A", {"x"}, {"y"}, 18), b.function("B", {"x"}, {"y"}, 18)};
  CHECK(error_of(call_of("f:A"), functions) ==
        "calls.onnx: node '0/0/0' (A): the function 'f.A' calls itself, which is not allowed");
}

TEST_CASE("functions that break a rule of the format are errors") {
  CHECK(error_of(call_of("f:Relu"), {relu_function("Relu"), relu_function("Relu")}) ==
        "calls.onnx: it has two functions with the name 'f.Relu'; names must differ");
  WrittenGraph twice;
  CHECK(error_of(call_of("f:Twice"), {twice.function("Twice", {"x", "x"}, {"x"}, 18)}) ==
        "calls.onnx: node '0' (Twice): the function 'f.Twice' has two inputs with the name 'x'; names must "
        "differ");
  WrittenGraph over;
  over.node("Relu", {"x"}, {"x"});
  CHECK(error_of(call_of("f:Over"), {over.function("Over", {"x"}, {"x"}, 18)}) ==
        "calls.onnx: node '0' (Over): the function 'f.Over' makes the value 'x', which is one of its inputs");
  WrittenGraph foreign;
  foreign.node("g:Relu", {"x"}, {"y"});
  CHECK(error_of(call_of("f:Foreign"), {foreign.function("Foreign", {"x"}, {"y"}, 18)}) ==
        "calls.onnx: node '0/0' (Relu): the function 'f.Foreign' names no version of the ops of its domain "
        "'g'");
  WrittenGraph body;
  body.node("Relu", {"x"}, {"y"});
  CHECK(error_of(call_of("f:New"), {body.function("New", {"x"}, {"y"}, 99)}) ==
        "calls.onnx: its function 'New' uses version 99 of the standard's ops, but versions 1 to 20 are "
        "supported; export it with one of them");
}

TEST_CASE("graphs within functions must not have initialisers") {
  WrittenGraph branch;
  branch.initialiser("r", {1}, {1});
  branch.output("r");
  WrittenGraph body;
  body.node("If", {"x"}, {"y"}, {{"then_branch", branch.inner()}, {"else_branch", branch.inner()}});
  CHECK(
      error_of(call_of("f:Choose"), {body.function("Choose", {"x"}, {"y"}, 18)}) ==
      "calls.onnx: node '0/0' (If): a graph within a function must not have initialisers; make them Constant "
      "nodes");
}

TEST_CASE("an op within a function that is not supported is reported with its place") {
  WrittenGraph body;
  body.node("Sinus", {"x"}, {"y"});
  CHECK(error_of(call_of("f:Wave"), {body.function("Wave", {"x"}, {"y"}, 18)}) ==
        "calls.onnx: these ops are not supported: Sinus (node '0/0'); replace them before the export");
}

TEST_CASE("a value that no call gives to an attribute outside of functions is an error") {
  const WrittenGraph graph = call_of("LeakyRelu", {{"alpha", WrittenGraph::Reference{"slope"}}});
  onnx::FileModel model(graph.model(18), "calls.onnx");
  Graph built;
  CHECK_THROWS_WITH_AS(
      model(built.input("x", {DType::float32, {2}})),
      "calls.onnx: node 0 (LeakyRelu): its attribute 'alpha' refers to the attribute 'slope' of "
      "a function, but the node is in no function",
      UserError);
}

// Each function calls the one before it twice.
Functions doubling_functions(int count) {
  Functions functions{relu_function("F0")};
  for (int i = 1; i < count; ++i) {
    WrittenGraph body;
    const std::string before = "f:F" + std::to_string(i - 1);
    body.node(before, {"x"}, {"h"});
    body.node(before, {"h"}, {"y"});
    functions.push_back(body.function("F" + std::to_string(i), {"x"}, {"y"}, 18));
  }
  return functions;
}

TEST_CASE("functions whose calls become too many nodes or bytes are an error") {
  const auto inlined = [](const onnx::InlineLimits& limits) {
    const std::string bytes = call_of("f:F4").model(18, doubling_functions(5));
    onnx::ModelProto model = onnx::parse_model(bytes);
    onnx::inline_functions(model, limits);
    return model.graph.nodes.size();
  };
  CHECK(inlined({.nodes = 46}) == 16);  // 2 + 4 + 8 + 16 calls, and 16 nodes
  CHECK_THROWS_AS(inlined({.nodes = 45}), UserError);
  CHECK_THROWS_AS(inlined({.bytes = 1000}), UserError);
  CHECK(error_of(call_of("f:F30"), doubling_functions(31)).find("more than 100000 nodes") !=
        std::string::npos);
}

TEST_CASE("functions that are nested too deep are an error") {
  const std::string error = error_of(call_of("f:F33"), doubling_functions(34));
  CHECK(error.find("functions and graphs are nested more than 32 deep") != std::string::npos);
}

}  // namespace plexaura::inline_functions_test
