#include "core/ops/cummax.h"

#include <cmath>
#include <doctest/doctest.h>

#include "core/graph/graph.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::cummax_test {

namespace {

using reference::at;
using reference::Index;

Tensor expected_values(const Tensor& x, std::size_t axis, bool smallest) {
  Tensor y = reference::zeros(x.shape());
  reference::for_each_index(x.shape(), [&](const Index& index) {
    Index place = index;
    at(y, index) = at(x, index);
    for (place[axis] = 0; place[axis] < index[axis]; ++place[axis])
      at(y, index) = smallest ? std::fmin(at(y, index), at(x, place)) : std::fmax(at(y, index), at(x, place));
  });
  return y;
}

OpCase extreme_case(const Shape& shape, std::int64_t axis, std::size_t from_front, bool smallest) {
  return {(smallest ? "cummin of " : "cummax of ") + to_string(shape) + ", axis " + std::to_string(axis),
          "argcummax",
          [=](Graph&, auto x) {
            return std::vector{(smallest ? cummin(x[0], axis) : cummax(x[0], axis)).values};
          },
          {{shape, distinct(0.25)}},
          [=](auto x) { return std::vector{expected_values(x[0], from_front, smallest)}; }};
}

const Cases cases({
    extreme_case({9}, 0, 0, false),
    extreme_case({3, 6}, -1, 1, false),
    extreme_case({2, 5, 3}, 1, 1, true),
    extreme_case({3, 1}, 1, 1, true),
    extreme_case({2, 3, 70}, 1, 1, false),
    extreme_case({2, 0}, 1, 1, false),
    extreme_case({0, 2}, 1, 1, true),
});

const WrongCases wrong({
    {"cummax along no axis",
     "argcummax",
     [](Graph& graph) {
       cummax(graph.input("x", {DType::float32, {2, 3}}), 2);
     },
     {"axis 2 does not exist"}},
    {"cummin along no axis",
     "argcummax",
     [](Graph& graph) {
       cummin(graph.input("x", {DType::float32, {2, 3}}), -3);
     },
     {"axis -3 does not exist"}},
});

std::vector<Tensor> run(const Tensor& value) {
  Graph graph;
  const Node x = graph.input("x", value.type());
  return Runner(graph, {argcummax(x, 0), argcummin(x, 0), cummax(x, 0).indices, cummin(x, 0).values},
                test_backend())({value});
}

}  // namespace

TEST_CASE("cummax: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("cummax: what it refuses") { check_all(wrong); }

TEST_CASE("argcummax and argcummin along another axis than the first") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, 2}});
  const auto results = Runner(graph, {argcummax(x, 1), argcummin(x, 1)},
                              test_backend())({Tensor::of<float>({2, 2}, {1, 2, 3, 0})});
  CHECK(results[0] == Tensor::of<std::int64_t>({2, 2}, {0, 1, 0, 0}));
  CHECK(results[1] == Tensor::of<std::int64_t>({2, 2}, {0, 0, 0, 1}));
}

TEST_CASE("cummax takes the last of equal elements") {
  const auto results = run(Tensor::of<std::int64_t>({6}, {2, 2, 1, 3, 1, 3}));
  CHECK(results[0] == Tensor::of<std::int64_t>({6}, {0, 1, 1, 3, 3, 5}));
  CHECK(results[1] == Tensor::of<std::int64_t>({6}, {0, 1, 2, 2, 4, 4}));
  CHECK(results[2] == results[0]);
  CHECK(results[3] == Tensor::of<std::int64_t>({6}, {2, 2, 1, 1, 1, 1}));
}

TEST_CASE("cummax remains at NaN") {
  const float nan = std::nanf("");
  const auto results = run(Tensor::of<float>({5}, {1, nan, 2, nan, -1}));
  for (const std::size_t i : {0, 1}) CHECK(results[i] == Tensor::of<std::int64_t>({5}, {0, 1, 1, 3, 3}));
  const std::vector<double> values = results[3].to_doubles();
  CHECK(values[0] == 1);
  for (std::size_t i = 1; i < 5; ++i) CHECK(std::isnan(values[i]));
}

}  // namespace plexaura::testing::cummax_test
