#include "core/ops/cumsum.h"

#include <doctest/doctest.h>

#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::cumsum_test {

namespace {

// Computes the sums by their definition, in quadratic time.
Tensor expected_sums(const Tensor& x, const CumsumOptions& options) {
  const std::int64_t rank = x.shape().rank();
  const auto axis = static_cast<std::size_t>(options.axis < 0 ? options.axis + rank : options.axis);
  Tensor y = reference::zeros(x.shape());
  reference::for_each_index(x.shape(), [&](const reference::Index& to) {
    reference::for_each_index(x.shape(), [&](const reference::Index& from) {
      reference::Index moved = from;
      moved[axis] = to[axis];
      if (moved != to || (options.exclusive && from == to)) return;
      if (options.reverse ? from[axis] >= to[axis] : from[axis] <= to[axis])
        reference::at(y, to) += reference::at(x, from);
    });
  });
  return y;
}

OpCase sums(Shape shape, CumsumOptions options) {
  return {"cumsum of " + to_string(shape) + ", " + to_string(description_of(options)),
          "cumsum",
          [=](Graph&, auto x) { return std::vector{cumsum(x[0], options)}; },
          {{std::move(shape), between(-2, 2)}},
          [=](auto x) { return std::vector{expected_sums(x[0], options)}; }};
}

const Cases cases({
    sums({3, 5}, {.axis = 0}),
    sums({3, 5}, {.axis = -1}),
    sums({3, 5}, {.axis = 1, .reverse = true}),
    sums({3, 5}, {.axis = 1, .exclusive = true}),
    sums({2, 17, 3}, {.axis = 1, .exclusive = true, .reverse = true}),
    sums({2, 17, 3, 2}, {.axis = 1}),
    sums({2, 3, 70}, {.axis = 1, .reverse = true}),
    sums({1}, {.exclusive = true}),
    sums({3, 0}, {.axis = 1}),
    sums({0, 4}, {.axis = 1}),
});

const WrongCases wrong({
    {"cumsum, an axis that is not there",
     "cumsum",
     [](Graph& graph) {
       cumsum(graph.input("x", {DType::float32, {2, 3}}), {.axis = 2});
     },
     {"axis 2 does not exist"}},
    {"cumsum, an axis before the first",
     "cumsum",
     [](Graph& graph) {
       cumsum(graph.input("x", {DType::float32, {2, 3}}), {.axis = -3});
     },
     {"axis -3 does not exist"}},
    {"cumsum of bool",
     "cumsum",
     [](Graph& graph) {
       cumsum(graph.input("x", {DType::boolean, {2}}), {});
     },
     {"not for bool", "cast()"}},
});

Tensor run(const Tensor& value, const CumsumOptions& options) {
  Graph graph;
  const Node x = graph.input("x", value.type());
  return Runner(graph, {cumsum(x, options)}, test_backend())({value})[0];
}

}  // namespace

TEST_CASE("cumsum: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("cumsum: what it refuses") { check_all(wrong); }

TEST_CASE("cumsum of integers is exact and wraps around in their own dtype") {
  CHECK(run(Tensor::of<std::int64_t>({3}, {1LL << 60, 1, 2}), {}) ==
        Tensor::of<std::int64_t>({3}, {1LL << 60, (1LL << 60) + 1, (1LL << 60) + 3}));
  CHECK(run(Tensor::of<std::uint8_t>({3}, {200, 100, 1}), {.reverse = true}) ==
        Tensor::of<std::uint8_t>({3}, {45, 101, 1}));
}

TEST_CASE("cumsum along an axis that is written as a number") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 2}});
  const auto results =
      Runner(graph, {cumsum(x, 1)}, test_backend())({Tensor::of<double>({2, 2}, {1, 2, 3, 4})});
  CHECK(results[0].to_doubles() == std::vector<double>{1, 3, 3, 7});
}

TEST_CASE("cumsum adds float32 up in a wider type") {
  const Tensor sums = run(Tensor::of<float>({4}, {16777216, 1, 1, -16777216}), {});
  CHECK(sums.to_doubles() == std::vector<double>{16777216, 16777216, 16777218, 2});
}

TEST_CASE("cumsum along equal axes are equal ops") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, 3}});
  const Op& front = *graph.record(cumsum(x, {.axis = 1}).id()).op;
  CHECK(front == *graph.record(cumsum(x, {.axis = -1}).id()).op);
  CHECK(!(front == *graph.record(cumsum(x, {.axis = 1, .reverse = true}).id()).op));
}

}  // namespace plexaura::testing::cumsum_test
