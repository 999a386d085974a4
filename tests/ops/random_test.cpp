#include "core/ops/random.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/ops/philox.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::random_test {

namespace {

constexpr StepBlock block_of_cases{.step = 3, .seed = 5, .first_sample = 7};

// Returns what the first random op of a graph computes. Element i is value(block, lane), where the block of four random
// words and the lane in it follow from the position of the element in the global batch.
template <class Value>
Tensor drawn_as(const Shape& shape, bool batch, const Value& value) {
  Tensor y(TensorType{DType::float64, shape});
  const philox::Draws draws(block_of_cases.seed, block_of_cases.step, Graph().next_stream());
  const bool by_sample = batch && shape.rank() > 0 && shape[0] > 0;
  const std::int64_t first = by_sample ? block_of_cases.first_sample * (shape.elements() / shape[0]) : 0;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    y.as<double>()[static_cast<std::size_t>(i)] = value(draws.block((first + i) / 4), (first + i) % 4);
  return y;
}

double evenly(const philox::Block& block, std::int64_t lane) { return std::ldexp(block.words[lane], -32); }

double normally(const philox::Block& block, std::int64_t lane) {
  const std::int64_t first = lane < 2 ? 0 : 2;
  const double share = std::ldexp(block.words[first] + 1.0, -32);
  const double turn = 2 * std::acos(-1.0) * std::ldexp(block.words[first + 1], -32);
  return std::sqrt(-2 * std::log(share)) * (lane % 2 == 0 ? std::cos(turn) : std::sin(turn));
}

OpCase uniform_case(const TensorType& type, bool batch, double low = -1, double high = 3) {
  OpCase op_case{
      "uniform " + to_string(type),
      "uniform",
      [=](Graph& graph, auto) { return std::vector{uniform(graph, type, low, high, {.batch = batch})}; },
      {},
      [=](auto) {
        return std::vector{drawn_as(type.shape, batch, [=](const auto& block, std::int64_t lane) {
          return low + (high - low) * evenly(block, lane);
        })};
      },
      false,
      false,
      {type.dtype}};
  op_case.block = block_of_cases;
  return op_case;
}

OpCase normal_case(const TensorType& type, bool batch, double mean = 2, double stddev = 0.5) {
  OpCase op_case{
      "normal " + to_string(type),
      "normal",
      [=](Graph& graph, auto) { return std::vector{normal(graph, type, mean, stddev, {.batch = batch})}; },
      {},
      [=](auto) {
        return std::vector{drawn_as(type.shape, batch, [=](const auto& block, std::int64_t lane) {
          return mean + stddev * normally(block, lane);
        })};
      },
      false,
      false,
      {type.dtype}};
  op_case.block = block_of_cases;
  return op_case;
}

const Cases cases({
    uniform_case({DType::float64, {4, 9}}, true),
    uniform_case({DType::float32, {2, 17, 3, 5}}, true),
    uniform_case({DType::bfloat16, {11}}, false),
    uniform_case({DType::float16, {3, 5}}, true),
    uniform_case({DType::float32, {0, 5}}, true),
    uniform_case({DType::float32, {}}, true),
    uniform_case({DType::float32, {1, 6}}, true, 5, 5.5),
    normal_case({DType::float64, {4, 9}}, true),
    normal_case({DType::float32, {2, 17, 3, 5}}, true),
    normal_case({DType::bfloat16, {11}}, false),
    normal_case({DType::float16, {3, 5}}, true),
    normal_case({DType::float32, {0, 5}}, true),
    normal_case({DType::float32, {1, 6}}, true, -3, 4),
});

const WrongCases wrong({
    {"uniform from above to below",
     "uniform",
     [](Graph& graph) {
       uniform(graph, {DType::float32, {2}}, 2, 1);
     },
     {"lower one (2)", "upper one (1)", "random_test.cpp"}},
    {"uniform to infinity",
     "uniform",
     [](Graph& graph) {
       uniform(graph, {DType::float32, {2}}, 0, std::numeric_limits<double>::infinity());
     },
     {"finite"}},
    {"uniform beyond the numbers of its dtype",
     "uniform",
     [](Graph& graph) {
       uniform(graph, {DType::float16, {2}}, 0, 1e6);
     },
     {"finite in float16", "upper one (1000000)"}},
    {"uniform over a distance that is no number",
     "uniform",
     [](Graph& graph) {
       uniform(graph, {DType::float64, {2}}, -1.7e308, 1.7e308);
     },
     {"their distance in float64"}},
    {"normal beyond the numbers of its dtype",
     "normal",
     [](Graph& graph) {
       normal(graph, {DType::float32, {2}}, 0, 1e300);
     },
     {"finite in float32", "deviation (1e+300)"}},
    {"uniform integers",
     "uniform",
     [](Graph& graph) {
       uniform(graph, {DType::int64, {2}});
     },
     {"cast()"}},
    {"normal with a negative deviation",
     "normal",
     [](Graph& graph) {
       normal(graph, {DType::float32, {2}}, 0, -1);
     },
     {"deviation (-1)", "not negative"}},
});

Tensor values_of(const std::function<Node(Graph&)>& build, const StepBlock& block) {
  Graph graph;
  const Node y = build(graph);
  return Runner(graph, {y}, test_backend())({}, block)[0];
}

Node noise(Graph& graph) { return normal(graph, {DType::float32, {6, 5}}); }

}  // namespace

TEST_CASE("uniform and normal: values") { check_all(cases); }
TEST_CASE("uniform and normal: what they refuse") { check_all(wrong); }

TEST_CASE("random values are new for each step, seed and op, and the same in a second run") {
  const Tensor one = values_of(noise, {.step = 1, .seed = 1});
  CHECK(one == values_of(noise, {.step = 1, .seed = 1}));
  CHECK(!(one == values_of(noise, {.step = 2, .seed = 1})));
  CHECK(!(one == values_of(noise, {.step = 1, .seed = 2})));
  Graph graph;
  const std::vector<Node> both{noise(graph), noise(graph)};
  const auto results = Runner(graph, both, test_backend())({}, {.step = 1, .seed = 1});
  CHECK(!(results[0] == results[1]));
}

TEST_CASE("uniform values are below the upper bound in every dtype, also where rounding would reach it") {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64})
    for (const double high : {1.0, 0.0, -1.0}) {
      const Tensor values = values_of(
          [&](Graph& graph) {
            return uniform(graph, {dtype, {1 << 14}}, high - 1, high);
          },
          {});
      const std::vector<double> drawn = values.to_doubles();
      CHECK(std::ranges::all_of(drawn, [&](double value) { return value >= high - 1 && value < high; }));
    }
}

TEST_CASE("the largest uniform value is the one below the upper bound, if the lower one is below it") {
  const auto largest = [](DType dtype, double low, double high) {
    return RandomDraws{{}, {dtype, {}}, low, high, 0}.largest();
  };
  CHECK(largest(DType::float16, 0, 1) == 1 - 0x1p-11);
  CHECK(largest(DType::bfloat16, 0, 1) == 1 - 0x1p-8);
  CHECK(largest(DType::float32, 0, 1) == 1 - 0x1p-24);
  CHECK(largest(DType::float64, 0, 1) == 1 - 0x1p-53);
  CHECK(largest(DType::float16, -2, -1) == -1 - 0x1p-10);
  CHECK(largest(DType::float16, -1, 0) == -0x1p-24);
  CHECK(largest(DType::float16, 3, 3) == 3);
  CHECK(largest(DType::float16, 1, 1.0001) == 1);
}

TEST_CASE("a later part of the batch has the values that the whole batch has there") {
  const std::vector<double> all = values_of(noise, {.step = 1, .seed = 1}).to_doubles();
  const auto last_two = [](Graph& graph) { return normal(graph, {DType::float32, {2, 5}}); };
  const std::vector<double> part =
      values_of(last_two, {.step = 1, .seed = 1, .first_sample = 4}).to_doubles();
  CHECK(part == std::vector<double>(all.end() - 10, all.end()));
}

TEST_CASE("random values have the mean and the deviation that they should have") {
  const auto moments = [](const std::vector<double>& values) {
    double mean = 0;
    double square = 0;
    for (const double value : values) mean += value / static_cast<double>(values.size());
    for (const double value : values)
      square += std::pow(value - mean, 2) / static_cast<double>(values.size());
    return std::pair{mean, std::sqrt(square)};
  };
  const auto [mean, deviation] = moments(values_of(
                                             [](Graph& graph) {
                                               return normal(graph, {DType::float32, {100, 1000}}, 3, 2);
                                             },
                                             {})
                                             .to_doubles());
  CHECK(mean == doctest::Approx(3).epsilon(0.01));
  CHECK(deviation == doctest::Approx(2).epsilon(0.01));
  const auto [middle, width] = moments(values_of(
                                           [](Graph& graph) {
                                             return uniform(graph, {DType::float32, {100, 1000}}, 1, 3);
                                           },
                                           {})
                                           .to_doubles());
  CHECK(middle == doctest::Approx(2).epsilon(0.01));
  CHECK(width == doctest::Approx(2 / std::sqrt(12.0)).epsilon(0.01));
}

TEST_CASE("random values with other numbers are different ops") {
  using Kind = RandomValues::Kind;
  const RandomDraws draws{{}, {DType::float32, {2}}, 0, 1, 4};
  const auto differs = [&](auto change) {
    RandomDraws other = draws;
    change(other);
    return !(RandomValues(Kind::uniform, draws) == RandomValues(Kind::uniform, other));
  };
  CHECK(differs([](RandomDraws& of) { of.type.shape = {3}; }));
  CHECK(differs([](RandomDraws& of) { of.type.dtype = DType::float64; }));
  CHECK(differs([](RandomDraws& of) { of.first = -1; }));
  CHECK(differs([](RandomDraws& of) { of.second = 2; }));
  CHECK(differs([](RandomDraws& of) { of.stream = 5; }));
  CHECK(differs([](RandomDraws& of) { of.batch = false; }));
  CHECK(!differs([](RandomDraws&) {}));
  CHECK(!(RandomValues(Kind::uniform, draws) == RandomValues(Kind::normal, draws)));
}

}  // namespace plexaura::testing::random_test
