#include "core/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/ops/pool2d.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::reduce_test {

namespace {

OpCase reduced(const std::string& op, Shape shape, ReduceOptions options) {
  const bool is_sum = op == "sum";
  return {op + " of " + to_string(shape) + ", {" +
              to_string(Reduce(Reduce::Kind::sum, options).description()) + "}",
          op,
          [=](Graph&, auto x) { return std::vector{is_sum ? sum(x[0], options) : mean(x[0], options)}; },
          {{std::move(shape)}},
          [=](auto x) {
            return std::vector{reference::reduce(x[0], options, is_sum ? reference::sum : reference::mean)};
          }};
}

OpCase chosen(const std::string& op, Shape shape, ReduceOptions options) {
  const bool largest = op == "max";
  return {op + " of " + to_string(shape) + ", {" +
              to_string(Reduce(Reduce::Kind::max, options).description()) + "}",
          op,
          [=](Graph&, auto x) { return std::vector{largest ? max(x[0], options) : min(x[0], options)}; },
          {{std::move(shape), distinct(0.25)}},
          [=](auto x) {
            return std::vector{
                reference::reduce(x[0], options, largest ? reference::largest : reference::smallest)};
          }};
}

OpCase place(Shape shape, std::int64_t axis, bool keepdims) {
  return {"argmax of " + to_string(shape),
          "argmax",
          [=](Graph&, auto x) { return std::vector{argmax(x[0], axis, keepdims)}; },
          {{std::move(shape), distinct(0.25)}},
          [=](auto x) {
            return std::vector{reference::reduce(x[0], {{axis}, keepdims}, reference::place_of_largest)};
          },
          false};
}

const Cases cases({
    reduced("sum", {3, 5}, {}),
    reduced("sum", {3, 5}, {.axes = {0}}),
    reduced("sum", {3, 5}, {.axes = {-1}, .keepdims = true}),
    reduced("sum", {2, 3, 4, 5}, {.axes = {1, 3}}),
    reduced("sum", {2, 3, 4, 5}, {.axes = {0, 2, 3}}),
    reduced("sum", {2, 17, 9, 11}, {.axes = {0, 2, 3}}),
    reduced("sum", {70, 130}, {.axes = {0}}),
    reduced("sum", {97, 16}, {.axes = {0}}),
    reduced("sum", {}, {}),
    reduced("sum", {0, 3}, {.axes = {0}}),
    reduced("sum", {0, 3}, {.axes = {1}}),
    chosen("max", {3, 5}, {}),
    chosen("max", {3, 5}, {.axes = {0}}),
    chosen("max", {2, 3, 4}, {.axes = {0, -1}, .keepdims = true}),
    chosen("max", {}, {}),
    chosen("max", {0, 3}, {.axes = {1}}),
    chosen("min", {3, 5}, {.axes = {1}}),
    chosen("min", {2, 17, 3}, {.axes = {1}}),
    chosen("min", {0, 3}, {.axes = {1}}),
    place({3, 5}, 1, false),
    place({3, 4, 5}, -2, true),
    place({7}, 0, false),
    place({0, 3}, 1, false),
    reduced("mean", {3, 5}, {}),
    reduced("mean", {3, 1, 5}, {.axes = {1}}),
    reduced("mean", {3, 1, 5}, {.axes = {1}, .keepdims = true}),
    reduced("mean", {2, 3, 4, 5}, {.axes = {-1, -2}}),
    reduced("mean", {0, 3}, {.axes = {1}}),
    {"global_avg_pool",
     "mean",
     [](Graph&, auto x) { return std::vector{global_avg_pool(x[0])}; },
     {{{2, 3, 4, 5}}},
     [](auto x) {
       return std::vector{reference::reduce(x[0], {.axes = {2, 3}}, reference::mean)};
     }},
    {"sum_to",
     "sum",
     [](Graph&, auto x) {
       return std::vector{sum_to(x[0], {3, 1, 5})};
     },
     {{{2, 3, 4, 5}}},
     [](auto x) {
       return std::vector{
           reference::reduce(x[0], {.axes = {0, 2}, .keepdims = true}, reference::sum).reshaped({3, 1, 5})};
     }},
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
    {"max of nothing",
     "max",
     [](Graph& graph) {
       max(graph.input("x", {DType::float32, {2, 0}}), {.axes = {1}});
     },
     {"axis 1 is empty"}},
    {"min of nothing",
     "min",
     [](Graph& graph) {
       min(graph.input("x", {DType::float32, {0}}));
     },
     {"axis 0 is empty"}},
    {"max before the first axis",
     "max",
     [](Graph& graph) {
       max(graph.input("x", {DType::float32, {2, 3}}), {.axes = {-3}});
     },
     {"axis -3 does not exist", "rank 2"}},
    {"argmax before the first axis",
     "argmax",
     [](Graph& graph) {
       argmax(graph.input("x", {DType::float32, {2, 3}}), -3);
     },
     {"axis -3 does not exist"}},
    {"argmax, an axis that is not there",
     "argmax",
     [](Graph& graph) {
       argmax(graph.input("x", {DType::float32, {2}}), 1);
     },
     {"axis 1 does not exist"}},
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

TEST_CASE("a single axis may be written as a number") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 3}});
  const auto results = Runner(graph, {sum(x, 1), mean(x, 0), max(x, -1), min(x, std::size_t{0})},
                              test_backend())({Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6})});
  CHECK(results[0].to_doubles() == std::vector<double>{6, 15});
  CHECK(results[1].to_doubles() == std::vector<double>{2.5, 3.5, 4.5});
  CHECK(results[2].to_doubles() == std::vector<double>{3, 6});
  CHECK(results[3].to_doubles() == std::vector<double>{1, 2, 3});
}

TEST_CASE("equal largest elements share the gradient; argmax names the first, and a NaN before all") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 4}});
  const Node y = max(x, {.axes = {1}});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto results = Runner(graph, {y, gradients(sum(y), {x})[0], argmax(x, 1)},
                              test_backend())({Tensor::of<double>({2, 4}, {1, 3, 3, 2, 5, nan, 7, nan})});
  CHECK(results[0].to_doubles()[0] == 3);
  CHECK(std::isnan(results[0].to_doubles()[1]));
  CHECK(results[1].to_doubles()[1] == 0.5);
  CHECK(results[1].to_doubles()[2] == 0.5);
  CHECK(results[1].to_doubles()[3] == 0);
  CHECK(results[2] == Tensor::of<std::int64_t>({2}, {1, 1}));
}

TEST_CASE("of negative numbers the largest is negative, of positive ones the smallest positive") {
  for (const std::int64_t count : {1, 3, 33, 100, 300}) {
    CAPTURE(count);
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(-2 - static_cast<float>((i + 1) % count));
    const Tensor below = Tensor::of<float>({count}, values);
    for (float& value : values) value = -value;
    Graph graph;
    const Node x = graph.input("x", below.type());
    const Node negated = graph.input("-x", below.type());
    const auto results = Runner(graph, {max(x), argmax(x, 0), min(negated)},
                                test_backend())({below, Tensor::of<float>({count}, values)});
    CHECK(results[0].to_doubles()[0] == -2);
    CHECK(results[1].to_doubles()[0] == static_cast<double>(count - 1));
    CHECK(results[2].to_doubles()[0] == 2);
  }
}

// All numbers are whole, so that sums are exact in any order.
TEST_CASE("few results of many elements each") {
  for (const auto& [rows, count] : {std::pair{1, 8191}, {1, 8192}, {1, 100003}, {3, 20011}}) {
    CAPTURE(rows);
    CAPTURE(count);
    const std::int64_t largest = count - 4000;
    Tensor in_rows(TensorType{DType::float32, {rows, count}});
    Tensor in_columns(TensorType{DType::float32, {count, rows}});
    double of_row = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = i == largest ? 1000 : static_cast<float>(i * 7 % 31);
      of_row += value;
      for (std::int64_t row = 0; row < rows; ++row) {
        in_rows.as<float>()[static_cast<std::size_t>(row * count + i)] = value;
        in_columns.as<float>()[static_cast<std::size_t>(i * rows + row)] = value;
      }
    }
    Graph graph;
    const Node x = graph.input("x", in_rows.type());
    const Node columns = graph.input("columns", in_columns.type());
    Runner runner(
        graph,
        {sum(x, {.axes = {1}}), sum(columns, {.axes = {0}}), sum(cast(x, DType::int64), {.axes = {1}}),
         mean(x, {.axes = {1}}), max(x, {.axes = {1}}), argmax(x, 1), min(columns, {.axes = {0}}), sum(x)},
        test_backend());
    const auto results = runner({in_rows, in_columns});
    const double mean_of_row = static_cast<float>(of_row / count);
    const double expected[] = {of_row, of_row, of_row, mean_of_row, 1000, static_cast<double>(largest), 0};
    for (std::size_t i = 0; i < std::size(expected); ++i) {
      CAPTURE(i);
      CHECK(results[i].to_doubles() == std::vector(static_cast<std::size_t>(rows), expected[i]));
    }
    CHECK(results.back().to_doubles()[0] == static_cast<double>(static_cast<float>(rows * of_row)));
    CHECK(runner({in_rows, in_columns}) == results);
  }
}

// From 513 rows on the kernels for CUDA divide no row, because they have 512 counters of the parts of rows.
TEST_CASE("many results of many elements each") {
  constexpr std::int64_t rows = 513;
  constexpr std::int64_t count = 8200;
  Tensor values(TensorType{DType::float32, {rows, count}});
  std::vector<double> sums;
  std::vector<double> places;
  for (std::int64_t row = 0; row < rows; ++row) {
    double of_row = 0;
    places.push_back(static_cast<double>(row * 13 % count));
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = i == row * 13 % count ? 1000 : static_cast<float>((i * 7 + row) % 31);
      values.as<float>()[static_cast<std::size_t>(row * count + i)] = value;
      of_row += value;
    }
    sums.push_back(of_row);
  }
  Graph graph;
  const Node x = graph.input("x", values.type());
  const auto results =
      Runner(graph, {sum(x, {.axes = {1}}), argmax(x, 1), max(x, {.axes = {1}})}, test_backend())({values});
  CHECK(results[0].to_doubles() == sums);
  CHECK(results[1].to_doubles() == places);
  CHECK(results[2].to_doubles() == std::vector<double>(rows, 1000));
}

TEST_CASE("the mean of more elements than a 16-bit float counts has a gradient") {
  for (const auto& [dtype, count] : {std::pair{DType::float16, 70000}, {DType::bfloat16, 1005}}) {
    Graph graph;
    const Node x = graph.input("x", {dtype, {2, count}});
    const Node of_all = mean(slice(x, {.axis = 0, .start = 0, .stop = 1}));
    const Node of_rows = sum(mean(x, {.axes = {1}}));
    Tensor ones(TensorType{DType::float64, x.shape()});
    std::ranges::fill(ones.as<double>(), 1.0);
    const auto results =
        Runner(graph, {of_all, gradients(of_all, {x})[0], of_rows, gradients(of_rows, {x})[0]},
               test_backend())({ones.cast(dtype)});
    const double share = Tensor::scalar(1.0 / count).cast(dtype).to_doubles()[0];
    CHECK(results[0].to_doubles()[0] == 1);
    CHECK(results[1].to_doubles()[0] == share);
    CHECK(results[2].to_doubles()[0] == 2);
    CHECK(results[3].to_doubles().back() == share);
  }
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

TEST_CASE("nothing has no largest element") {
  Graph graph;
  const Node none = graph.input("none", {DType::float32, {2, 0}});
  CHECK_THROWS_AS(argmax(none, 1), UserError);
}

}  // namespace plexaura::testing::reduce_test
