#include "core/ops/subscript.h"

#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/graph/graph.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::subscript_test {

namespace {

const TensorType matrix{DType::float64, {3, 4}};

// Element [i, j] of the matrix is 4 i + j.
Tensor counted() { return Tensor::of<double>({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}); }

Tensor value_of(const Node& node) { return Runner(node.graph(), {node}, test_backend())({counted()})[0]; }

Tensor vector(const std::vector<double>& values) {
  return Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values);
}

}  // namespace

TEST_CASE("an index removes its axis, and negative ones count from the end") {
  Graph graph;
  const Node x = graph.input("x", matrix);
  CHECK(value_of(x[1]) == vector({4, 5, 6, 7}));
  CHECK(value_of(x[-1]) == vector({8, 9, 10, 11}));
  CHECK(value_of(x[std::size_t{2}]) == vector({8, 9, 10, 11}));
  CHECK(value_of(x[{1, -2}]) == Tensor::scalar(6.0));
}

TEST_CASE("a slice keeps its axis, and may have open ends and a step") {
  Graph graph;
  const Node x = graph.input("x", matrix);
  CHECK(value_of(x[slice(1, 3)]) == Tensor::of<double>({2, 4}, {4, 5, 6, 7, 8, 9, 10, 11}));
  CHECK(value_of(x[slice({}, -2)]) == Tensor::of<double>({1, 4}, {0, 1, 2, 3}));
  CHECK(value_of(x[slice({}, {}, 2)]) == Tensor::of<double>({2, 4}, {0, 1, 2, 3, 8, 9, 10, 11}));
  CHECK(value_of(x[slice(2, 9)]).shape() == Shape{1, 4});
  CHECK(value_of(x[slice(2, 2)]).shape() == Shape{0, 4});
}

TEST_CASE("indices and slices of several axes are combined") {
  Graph graph;
  const Node x = graph.input("x", matrix);
  CHECK(value_of(x[{slice(1, {}), 3}]) == vector({7, 11}));
  CHECK(value_of(x[{0, slice(1, 3)}]) == vector({1, 2}));
  CHECK(value_of(x[{slice({}, 2), slice({}, {}, 3)}]) == Tensor::of<double>({2, 2}, {0, 3, 4, 7}));
  CHECK(value_of(x[{slice({}, {}), slice({}, {})}]) == counted());
}

TEST_CASE("the gradient of a subscript is zero outside of it") {
  Graph graph;
  const Node x = graph.input("x", matrix);
  const Node slope = gradients(sum(square(x[{slice(1, 3), 0}])), {x})[0];
  CHECK(value_of(slope) == Tensor::of<double>({3, 4}, {0, 0, 0, 0, 8, 0, 0, 0, 16, 0, 0, 0}));
}

TEST_CASE("what a subscript refuses, with the user's line") {
  Graph graph;
  const Node x = graph.input("x", matrix);
  const int line = __LINE__ + 1;
  const std::string beyond = user_error([&] { x[3]; });
  const std::string below = user_error([&] { x[{0, -5}]; });
  CHECK(contains(beyond, "subscript_test.cpp:" + std::to_string(line)));
  CHECK(contains(beyond, "[](float64[3,4]): axis 0 has 3 elements, and none with the index 3"));
  CHECK(contains(below, "subscript_test.cpp:" + std::to_string(line + 1)));
  CHECK(contains(below, "axis 1 has 4 elements, and none with the index -5"));
  CHECK(contains(user_error([&] { x[{0, 0, 0}]; }), "there are 3 indices for 2 axes"));
  CHECK(contains(user_error([&] { x[slice(0, 3, 0)]; }), "the step must not be 0"));
  CHECK(contains(user_error([] { Node()[0]; }), "an empty Node was used as a value"));
}

}  // namespace plexaura::testing::subscript_test
