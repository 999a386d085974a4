#include "core/ops/reduce.h"

#include <cmath>
#include <doctest/doctest.h>

#include "core/ops/pool2d.h"
#include "core/testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"

namespace plexaura::testing {

namespace {

OpCase reduced(std::string op, Shape shape, ReduceOptions options) {
  const bool is_sum = op == "sum";
  return {
      op + " of " + to_string(shape) + ", {" + to_string(describe(Reduce(Reduce::Kind::sum, options))) + "}",
      op,
      [=](Graph&, auto x) { return std::vector{is_sum ? sum(x[0], options) : mean(x[0], options)}; },
      {{std::move(shape)}}};
}

const Cases cases({
    reduced("sum", {3, 5}, {}),
    reduced("sum", {3, 5}, {.axes = {0}}),
    reduced("sum", {3, 5}, {.axes = {-1}, .keepdims = true}),
    reduced("sum", {2, 3, 4, 5}, {.axes = {1, 3}}),
    reduced("sum", {2, 3, 4, 5}, {.axes = {0, 2, 3}}),
    reduced("sum", {2, 17, 9, 11}, {.axes = {0, 2, 3}}),
    reduced("sum", {70, 130}, {.axes = {0}}),
    reduced("sum", {}, {}),
    reduced("sum", {0, 3}, {.axes = {0}}),
    reduced("sum", {0, 3}, {.axes = {1}}),
    reduced("mean", {3, 5}, {}),
    reduced("mean", {3, 1, 5}, {.axes = {1}}),
    reduced("mean", {3, 1, 5}, {.axes = {1}, .keepdims = true}),
    reduced("mean", {2, 3, 4, 5}, {.axes = {-1, -2}}),
    {"global_avg_pool",
     "mean",
     [](Graph&, auto x) { return std::vector{global_avg_pool(x[0])}; },
     {{{2, 3, 4, 5}}}},
    {"sum_to",
     "sum",
     [](Graph&, auto x) {
       return std::vector{sum_to(x[0], {3, 1, 5})};
     },
     {{{2, 3, 4, 5}}}},
});

const WrongCases wrong({
    {"sum over an axis that is not there",
     "sum",
     [](Graph& graph) {
       sum(graph.input("x", {DType::float32, {2, 3}}), {.axes = {2}});
     },
     {"axis 2 does not exist", "rank 2"}},
    {"sum over an axis twice",
     "sum",
     [](Graph& graph) {
       sum(graph.input("x", {DType::float32, {2, 3}}), {.axes = {1, -1}});
     },
     {"named twice"}},
    {"sum of bools",
     "sum",
     [](Graph& graph) {
       sum(graph.input("x", {DType::boolean, {2}}));
     },
     {"bool", "cast()"}},
    {"mean of integers",
     "mean",
     [](Graph& graph) {
       mean(graph.input("x", {DType::int64, {2}}));
     },
     {"int64", "cast()"}},
});

}  // namespace

TEST_CASE("reductions: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("reductions: what they refuse") { check_all(wrong); }

TEST_CASE("a mean over an axis of extent 1 keeps the other axes") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4, 1, 3}});
  CHECK(mean(x, {.axes = {1}}).shape() == Shape{4, 3});
  CHECK(mean(x, {.axes = {1}, .keepdims = true}).shape() == Shape{4, 1, 3});
}

TEST_CASE("sums of float32 do not lose small terms") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {1 << 20}});
  std::vector<float> values(1 << 20, 0.1F);
  const auto result = Runner(graph, {sum(x)}, oracle())({Tensor::of<float>({1 << 20}, values)});
  CHECK(result[0].to_doubles()[0] == doctest::Approx(0.1F * (1 << 20)).epsilon(1e-7));
}

TEST_CASE("sums of integers and of nothing") {
  Graph graph;
  const Node x = graph.input("x", {DType::int64, {2, 2}});
  const Node none = graph.input("none", {DType::float32, {0}});
  Runner runner(graph, {sum(x, {.axes = {0}}), sum(none), mean(none)}, test_backend());
  const auto results = runner(
      {Tensor::of<std::int64_t>({2, 2}, {1, 2, 3, 1LL << 60}), Tensor(TensorType{DType::float32, {0}})});
  CHECK(results[0] == Tensor::of<std::int64_t>({2}, {4, (1LL << 60) + 2}));
  CHECK(results[1].to_doubles()[0] == 0);
  CHECK(std::isnan(results[2].to_doubles()[0]));
}

}  // namespace plexaura::testing
