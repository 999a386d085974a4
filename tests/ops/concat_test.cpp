#include "core/ops/concat.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::concat_test {

namespace {

using reference::at;
using reference::Index;

Tensor joined(std::span<const Tensor> parts, std::size_t axis) {
  std::vector<std::int64_t> extents = parts[0].shape().extents();
  extents[axis] = 0;
  for (const Tensor& part : parts) extents[axis] += part.shape().extents()[axis];
  Tensor y = reference::zeros(Shape(extents));
  std::int64_t first = 0;
  for (const Tensor& part : parts) {
    reference::for_each_index(part.shape(), [&](const Index& index) {
      Index to = index;
      to[axis] += first;
      at(y, to) = at(part, index);
    });
    first += part.shape().extents()[axis];
  }
  return y;
}

OpCase concatenated(const std::string& name, std::vector<Shape> shapes, std::int64_t axis,
                    std::size_t from_front) {
  OpCase op_case{"concat, " + name,
                 "concat",
                 [=](Graph&, auto x) {
                   return std::vector{concat({x.begin(), x.end()}, axis)};
                 },
                 {},
                 [=](auto x) { return std::vector{joined(x, from_front)}; }};
  for (Shape& shape : shapes) op_case.inputs.push_back({std::move(shape)});
  return op_case;
}

const Cases cases({
    concatenated("rows", {{2, 3}, {1, 3}, {4, 3}}, 0, 0),
    concatenated("columns", {{2, 3}, {2, 5}}, -1, 1),
    concatenated("one part", {{2, 3}}, 1, 1),
    concatenated("an empty part", {{2, 0, 2}, {2, 3, 2}, {2, 0, 2}}, 1, 1),
    concatenated("channels of images", {{2, 3, 2, 2}, {2, 17, 2, 2}, {2, 16, 2, 2}}, 1, 1),
    {"concat, a part with itself",
     "concat",
     [](Graph&, auto x) {
       return std::vector{concat({x[0], x[0]}, 0)};
     },
     {{{2, 3}}},
     [](auto x) {
       return std::vector{joined(std::vector<Tensor>{x[0], x[0]}, 0)};
     }},
});

void concat_of(Graph& graph, const TensorType& a, const TensorType& b, std::int64_t axis) {
  concat({graph.input("a", a), graph.input("b", b)}, axis);
}

const WrongCases wrong({
    {"concat of two dtypes",
     "concat",
     [](Graph& graph) {
       concat_of(graph, {DType::float32, {2}}, {DType::int64, {2}}, 0);
     },
     {"float32", "int64", "cast()"}},
    {"concat of two ranks",
     "concat",
     [](Graph& graph) {
       concat_of(graph, {DType::float32, {2}}, {DType::float32, {2, 1}}, 0);
     },
     {"equally many axes"}},
    {"concat along another axis",
     "concat",
     [](Graph& graph) {
       concat_of(graph, {DType::float32, {2, 3}}, {DType::float32, {2, 4}}, 0);
     },
     {"along every axis but 0", "3 elements along axis 1", "another 4"}},
    {"concat along no axis",
     "concat",
     [](Graph& graph) {
       concat_of(graph, {DType::float32, {2}}, {DType::float32, {2}}, 1);
     },
     {"axis 1 does not exist"}},
});

}  // namespace

TEST_CASE("concat: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("concat: what it refuses") { check_all(wrong); }

TEST_CASE("concat: nodes in a vector, and the line of the call that gives wrong ones") {
  Graph graph;
  std::vector<Node> nodes{graph.input("a", {DType::float32, {2, 3}}),
                          graph.input("b", {DType::float32, {2, 5}})};
  CHECK(concat(nodes, 1).shape() == Shape{2, 8});
  const auto here = std::source_location::current();
  const std::string error = user_error([&] { concat(nodes, 0); });
  CHECK(error.find("concat_test.cpp:" + std::to_string(here.line() + 1) +
                   ": concat(float32[2,3], float32[2,5])") != std::string::npos);
}

TEST_CASE("concat takes any dtype, and needs a part") {
  Graph graph;
  const Node a = graph.input("a", {DType::int64, {2}});
  const Node b = graph.input("b", {DType::int64, {1}});
  const auto result = Runner(graph, {concat({a, b, a}, 0)}, test_backend())(
      {Tensor::of<std::int64_t>({2}, {1, 2}), Tensor::of<std::int64_t>({1}, {3})});
  CHECK(result[0] == Tensor::of<std::int64_t>({5}, {1, 2, 3, 1, 2}));
  CHECK_THROWS_AS(concat({}, 0), UserError);
}

}  // namespace plexaura::testing::concat_test
