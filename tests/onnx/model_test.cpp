#include "onnx/model.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "onnx/runner.h"

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/ops/reduce.h"
#include "core/vm/function.h"
#include "models/layers/linear.h"
#include "models/layers/sequential.h"
#include "tests/onnx/written_model.h"
#include "tests/support/backend.h"

namespace plexaura::onnx_model_test {

namespace {

// y = relu(x weight^T + bias) for x [N, 2].
std::string linear_model() {
  WrittenGraph graph;
  graph.node("Gemm", {"x", "fc:weight", "bias"}, {"h"}, {{"transB", 1}});
  graph.node("Relu", {"h"}, {"y"});
  graph.initialiser("fc:weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  graph.initialiser("bias", {3}, {0, -100, 1});
  graph.input("x", {-1, 2});
  graph.output("y");
  return graph.model(13);
}

// Reads each beginning of a file, and the file with each of its bits flipped, and builds what can be read.
template <class Build>
void read_damaged(const std::string& whole, const Build& build) {
  const auto read = [&](std::string bytes) {
    try {
      onnx::FileModel model(std::move(bytes), "damaged.onnx");
      const ParameterStore store = model.make_store();
      Graph graph;
      build(model, graph);
    } catch (const UserError&) {
    }
  };
  for (std::size_t length = 0; length < whole.size(); ++length) read(whole.substr(0, length));
  for (std::size_t i = 0; i < 8 * whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    read(std::move(damaged));
  }
}

}  // namespace

TEST_CASE("floating initialisers of a file are parameters under names that a store accepts") {
  onnx::FileModel model(linear_model(), "linear.onnx");
  CHECK(model.parameter_names() == std::vector<std::string>{"fc_weight", "bias"});
  const ParameterStore store = model.make_store();
  CHECK(store.read("fc_weight") == Tensor::of({3, 2}, std::vector{1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}));
}

TEST_CASE("as a member of another module, a model of a file starts with the values of the file") {
  layers::Sequential net;
  net.add("file", std::make_unique<onnx::FileModel>(linear_model(), "linear.onnx"));
  net.add("head", std::make_unique<layers::Linear>(3, 2));
  const ParameterStore store = make_store(net, DType::float32, 1);
  CHECK(store.read("file.fc_weight") == Tensor::of({3, 2}, std::vector{1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}));
}

TEST_CASE("a model of a file computes its outputs for each shape") {
  onnx::FileModel model(linear_model(), "linear.onnx");
  ParameterStore store = model.make_store();
  onnx::Runner run(model, store, testing::test_backend());
  CHECK(run({{"x", Tensor::of({1, 2}, std::vector{1.0F, 1.0F})}})[0] ==
        Tensor::of({1, 3}, std::vector{3.0F, 0.0F, 12.0F}));
  const Tensor two = Tensor::of({2, 2}, std::vector{1.0F, 1.0F, 0.0F, 0.0F});
  CHECK(run({{"x", two}})[0] == Tensor::of({2, 3}, std::vector{3.0F, 0.0F, 12.0F, 0.0F, 0.0F, 1.0F}));
}

TEST_CASE("the parameters of a file have gradients") {
  onnx::FileModel model(linear_model(), "linear.onnx");
  ParameterStore store = model.make_store();
  Graph graph;
  const Node x = graph.constant(Tensor::of({1, 2}, std::vector{1.0F, 1.0F}));
  const Node bias = graph.parameter("bias", {DType::float32, {3}});
  const Node slope = gradients(sum(model(x)), {bias})[0];
  CHECK(evaluate(slope, {}, testing::test_backend(), &store) ==
        Tensor::of({3}, std::vector{1.0F, 0.0F, 1.0F}));
}

TEST_CASE("a shape that is an input is a value of the program") {
  WrittenGraph graph;
  graph.node("Reshape", {"x", "shape"}, {"y"});
  graph.input("x", {4});
  graph.input("shape", {-1}, 7);
  graph.output("y");
  onnx::FileModel model(graph.model(13), "reshape.onnx");
  ParameterStore store = model.make_store();
  onnx::Runner run(model, store, testing::test_backend());
  const Tensor x = Tensor::of({4}, std::vector{1.0F, 2.0F, 3.0F, 4.0F});
  CHECK(run({{"x", x}, {"shape", Tensor::of({2}, std::vector<std::int64_t>{2, 2})}})[0].shape() ==
        Shape{2, 2});
  CHECK(run({{"x", x}, {"shape", Tensor::of({2}, std::vector<std::int64_t>{1, 4})}})[0].shape() ==
        Shape{1, 4});
  CHECK(run.value_inputs() == std::set<std::string>{"shape"});
}

TEST_CASE("all ops that are missing are reported at once with their nodes") {
  WrittenGraph graph;
  graph.node("Sinus", {"x"}, {"a"});
  graph.node("Relu", {"a"}, {"b"});
  graph.node("Cosinus", {"b"}, {"y"});
  graph.input("x", {1});
  graph.output("y");
  CHECK_THROWS_WITH_AS(
      onnx::FileModel(graph.model(13), "odd.onnx"),
      "odd.onnx: these ops are not supported: Cosinus (node 2); Sinus (node 0); replace them before "
      "the export",
      UserError);
}

TEST_CASE("an attribute without effect is an error that names its node") {
  WrittenGraph graph;
  graph.node("Relu", {"x"}, {"y"}, {{"alpha", 1}});
  graph.input("x", {1});
  graph.output("y");
  onnx::FileModel model(graph.model(13), "relu.onnx");
  Graph built;
  CHECK_THROWS_WITH_AS(model(built.input("x", {DType::float32, {1}})),
                       "relu.onnx: node 0 (Relu): its attribute 'alpha' is not supported", UserError);
}

TEST_CASE("a version of the ops that is not supported is an error") {
  WrittenGraph graph;
  CHECK_THROWS_WITH_AS(
      onnx::FileModel(graph.model(21), "new.onnx"),
      "new.onnx: it uses version 21 of the standard's ops, but versions 1 to 20 are supported; export "
      "it with one of them",
      UserError);
}

TEST_CASE("a loop that is cut or damaged anywhere is an error or another model") {
  WrittenGraph body;
  body.input("i", {}, 7);
  body.input("on", {}, 9);
  body.input("h", {1});
  body.initialiser("w", {1}, {2});
  body.node("Mul", {"h", "w"}, {"n"});
  body.output("on");
  body.output("n");
  WrittenGraph graph;
  graph.input("m", {}, 7);
  graph.input("x", {1});
  graph.node("Loop", {"m", "", "x"}, {"y"}, {{"body", body.inner()}});
  graph.output("y");
  read_damaged(graph.model(13), [](const onnx::FileModel& model, Graph& built) {
    model(built, {{"m", built.constant(Tensor::scalar(std::int64_t{2}))},
                  {"x", built.input("x", {DType::float32, {1}})}});
  });
}

TEST_CASE("graphs that are nested too deep are an error") {
  WrittenGraph graph;
  graph.output("x");
  for (int depth = 0; depth < 33; ++depth) {
    WrittenGraph outer;
    outer.node("If", {"on"}, {"x"}, {{"then_branch", graph.inner()}});
    outer.output("x");
    graph = outer;
  }
  CHECK_THROWS_WITH_AS(onnx::FileModel(graph.model(13), "deep.onnx"),
                       "deep.onnx: graphs are nested more than 32 deep", UserError);
}

TEST_CASE("a file that is cut or damaged anywhere is an error or another model") {
  read_damaged(linear_model(), [](const onnx::FileModel& model, Graph& graph) {
    model(graph.input("x", {DType::float32, {1, 2}}));
  });
}

TEST_CASE("a file with functions that is cut or damaged anywhere is an error or another model") {
  WrittenGraph branch;
  branch.node("f:Slope", {"h"}, {"r"}, {{"alpha", 0.5F}});
  branch.output("r");
  WrittenGraph slope;
  slope.node("LeakyRelu", {"x"}, {"y"}, {{"alpha", WrittenGraph::Reference{"alpha"}}});
  WrittenGraph choose;
  choose.node("Mul", {"x", "w"}, {"h"});
  choose.node("If", {"on"}, {"y"}, {{"then_branch", branch.inner()}, {"else_branch", branch.inner()}});
  WrittenGraph graph;
  graph.input("x", {1});
  graph.input("on", {}, 9);
  graph.initialiser("w", {1}, {2});
  graph.node("f:Choose", {"x", "on", "w"}, {"y"});
  graph.output("y");
  const std::vector<std::string> functions{slope.function("Slope", {"x"}, {"y"}, 13, {"alpha"}),
                                           choose.function("Choose", {"x", "on", "w"}, {"y"}, 13)};
  read_damaged(graph.model(13, functions), [](const onnx::FileModel& model, Graph& built) {
    model(built,
          {{"x", built.input("x", {DType::float32, {1}})}, {"on", built.constant(Tensor::scalar(true))}});
  });
}

TEST_CASE("two initialisers with one name are an error") {
  WrittenGraph graph;
  graph.initialiser("w", {1}, {1});
  graph.initialiser("w", {1}, {2});
  CHECK_THROWS_WITH_AS(onnx::FileModel(graph.model(13), "twice.onnx"),
                       "twice.onnx: it has two initialisers with the name 'w'; names must differ", UserError);
}

}  // namespace plexaura::onnx_model_test
