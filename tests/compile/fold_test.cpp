#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/base/error.h"
#include "core/compile/passes.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/dropout.h"
#include "core/ops/gather.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::fold_test {

namespace {

const Leaf* constant_of(const PassGraph& graph, std::size_t root) {
  const Leaf* leaf = as_leaf(*graph.graph->record(graph.roots[root].node).op);
  return leaf != nullptr && leaf->kind() == LeafKind::constant ? leaf : nullptr;
}

PassGraph folded(const Graph& graph, const std::vector<Node>& nodes) {
  std::vector<Value> roots;
  for (const Node& node : nodes) roots.push_back(node.value());
  return fold(copy(graph, roots), test_backend());
}

Tensor counted(Shape shape) {
  Tensor tensor(TensorType{DType::float32, std::move(shape)});
  float next = 1;
  for (float& element : tensor.as<float>()) element = next++;
  return tensor;
}

}  // namespace

TEST_CASE("what depends on constants alone becomes one") {
  Graph graph;
  const Node c = graph.constant(counted({2, 3}));
  const Node x = graph.input("x", {DType::float32, {2, 3}});
  const Node known = (c + 1) * c;
  const PassGraph result = folded(graph, {known, known + x, reshape(known, {6})});
  REQUIRE(constant_of(result, 0) != nullptr);
  CHECK(constant_of(result, 0)->value()->to_doubles() == std::vector<double>{2, 6, 12, 20, 30, 42});
  CHECK(constant_of(result, 1) == nullptr);
  REQUIRE(constant_of(result, 2) != nullptr);
  CHECK(constant_of(result, 2)->value()->shape() == Shape{6});
  CHECK(result.graph->size() == 4);  // two constants, x and the sum
}

TEST_CASE("what cannot be computed from constants names its node") {
  Graph graph;
  const Node rows =
      gather(graph.constant(counted({2, 3})), graph.constant(Tensor::of<std::int64_t>({1}, {5})));
  // A device with its own memory reports the error later, as a failure of the device.
  const std::string text = error_text<std::exception>([&] { folded(graph, {rows}); });
  CHECK(text.starts_with("gather %2 of "));
  CHECK(text.find("fold_test.cpp:") != std::string::npos);
  CHECK(text.find("element 0 of the indices is 5") != std::string::npos);
}

TEST_CASE("kernels of the backend fold, whatever layout they like") {
  Graph graph;
  const Node y = conv2d(graph.constant(counted({1, 3, 4, 4})), graph.constant(counted({2, 3, 3, 3}))) + 1;
  Graph plain;
  const Node expected =
      conv2d(plain.constant(counted({1, 3, 4, 4})), plain.constant(counted({2, 3, 3, 3}))) + 1;
  const PassGraph result = folded(graph, {y});
  const std::vector<Value> roots{expected.value()};
  const PassGraph reference = fold(copy(plain, roots), oracle());
  REQUIRE(constant_of(result, 0) != nullptr);
  const auto left = constant_of(result, 0)->value()->to_doubles();
  const auto right = constant_of(reference, 0)->value()->to_doubles();
  for (std::size_t i = 0; i < left.size(); ++i) CHECK(left[i] == doctest::Approx(right[i]).epsilon(1e-5));
}

TEST_CASE("what is no number, infinite or a negative zero folds to what a run gives") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16}) {
    CAPTURE(std::string(name_of(dtype)));
    const auto build = [&](Graph& graph) {
      const Node c = graph.constant(
          Tensor::of<double>({6}, {-1, 0, -0.0, infinity, -infinity, std::nan("")}).cast(dtype));
      return std::vector{log(c), c / c, c - c, 1 / c, sqrt(c), relu(c), c * 0, cast(c, DType::float32)};
    };
    Graph graph;
    const std::vector<Node> nodes = build(graph);
    const PassGraph result = folded(graph, nodes);
    const std::vector<Tensor> run = Runner(graph, nodes, test_backend(), {.optimise = false})({});
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      CAPTURE(i);
      REQUIRE(constant_of(result, i) != nullptr);
      const std::vector<double> constants = constant_of(result, i)->value()->to_doubles();
      const std::vector<double> expected = run[i].to_doubles();
      for (std::size_t k = 0; k < expected.size(); ++k) {
        CAPTURE(constants[k]);
        CAPTURE(expected[k]);
        CHECK(std::isnan(constants[k]) == std::isnan(expected[k]));
        if (std::isnan(expected[k])) continue;
        CHECK(constants[k] == expected[k]);
        CHECK(std::signbit(constants[k]) == std::signbit(expected[k]));
      }
    }
    CHECK(std::isnan(run[0].to_doubles()[0]));
    CHECK(std::isnan(run[1].to_doubles()[1]));
    CHECK(std::isnan(run[2].to_doubles()[3]));
  }
}

TEST_CASE("draws, parameters and what is large are left alone") {
  Graph graph;
  const Node c = graph.constant(counted({4}));
  const Node draw = dropout(c, {.p = 0.5});
  const Node parameter = graph.parameter("w", {DType::float32, {4}}) * 2;
  const Node large = broadcast_to(graph.constant(Tensor::scalar(1.F)), {1 << 19}) + 1;
  const PassGraph result = folded(graph, {draw, parameter, large});
  for (std::size_t root = 0; root < 3; ++root) CHECK(constant_of(result, root) == nullptr);
}

TEST_CASE("updates hold through folding") {
  Graph graph;
  const Node b = graph.buffer("b", {DType::float32, {4}});
  graph.update(b, graph.constant(counted({4})) + 1);
  const PassGraph result = folded(graph, {});
  REQUIRE(result.graph->updates().size() == 1);
  const Value next = result.graph->updates()[0].next;
  CHECK(as_leaf(*result.graph->record(next.node).op) != nullptr);
}

TEST_CASE("verify takes what builders make") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  graph.update(graph.buffer("b", {DType::float32, {4}}), exp(x));
  verify(graph);
}

}  // namespace plexaura::testing::fold_test
