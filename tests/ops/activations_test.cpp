#include "core/ops/activations.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/function_cases.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::activations_test {

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double within(double x, double low, double high) { return std::min(std::max(x, low), high); }
double exponential_unit(double x, double alpha) { return x > 0 ? x : alpha * (std::exp(x) - 1); }

const std::vector<UnaryFunction> functions{
    {"log_sigmoid", log_sigmoid, between(-4, 4), [](double x) { return std::log(logistic(x)); }},
    {"softsign", softsign, away_from_zero(), [](double x) { return x / (1 + std::fabs(x)); }},
    {"silu", silu, between(-4, 4), [](double x) { return x * logistic(x); }},
    {"mish", mish, between(-4, 4), [](double x) { return x * std::tanh(std::log(1 + std::exp(x))); }},
    {"elu", [](Operand x) { return elu(x, 0.7); }, away_from_zero(),
     [](double x) { return exponential_unit(x, 0.7); }},
    {"selu", selu, away_from_zero(),
     [](double x) { return 1.0507009873554804934193 * exponential_unit(x, 1.6732632423543772848170); }},
    {"hard_tanh", [](Operand x) { return hard_tanh(x, -0.7, 1.1); }, distinct(0.3),
     [](double x) { return within(x, -0.7, 1.1); }},
    {"hard_sigmoid", hard_sigmoid, distinct(0.7), [](double x) { return within(x + 3, 0, 6) / 6; }},
    {"hard_swish", hard_swish, distinct(0.7), [](double x) { return x * within(x + 3, 0, 6) / 6; }},
};

OpCase named(const std::string& name, const UnaryFunction& of) {
  OpCase op_case = case_of(of);
  op_case.name = name;
  return op_case;
}

OpCase prelu_case(Shape x, std::int64_t slopes) {
  return {"prelu of " + to_string(x) + ", " + std::to_string(slopes) + " slopes",
          "prelu",
          [](Graph&, auto x) { return std::vector{prelu(x[0], x[1])}; },
          {{x, away_from_zero()}, {{slopes}}},
          [=](auto given) {
            std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank() - 1), 1);
            extents[0] = slopes;
            return reference::elementwise([](double a, double slope) { return a > 0 ? a : slope * a; })(
                std::vector{given[0], slopes == 1 ? given[1] : given[1].reshaped(Shape(extents))});
          }};
}

const Cases cases(made_of(functions, case_of));
const Cases special_cases({
    named("celu", {"elu", [](Operand x) { return celu(x, 1.7); }, away_from_zero(),
                   [](double x) { return x > 0 ? x : 1.7 * (std::exp(x / 1.7) - 1); }}),
    named("relu6", {"hard_tanh", relu6, distinct(0.7), [](double x) { return within(x, 0, 6); }}),
    prelu_case({3, 5}, 5),
    prelu_case({3, 5}, 1),
    prelu_case({0, 5}, 5),
    prelu_case({2, 3, 2, 2}, 3),
});

// Returns a case in which the function is built with an option that it refuses.
WrongCase refused(const std::string& op, const std::string& name, Node (*build)(Operand x),
                  std::vector<std::string> words) {
  return {op + ", " + name, op,
          [=](Graph& graph) {
            build(graph.input("x", {DType::float32, {2, 3}}));
          },
          std::move(words)};
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

const WrongCases wrong_types(made_of(functions, of_integers));
const WrongCases wrong({
    refused("elu", "alpha is no number", [](Operand x) { return elu(x, nan); },
            {"float32[2,3]", "alpha must be a finite number, not nan"}),
    refused("celu", "alpha is 0", [](Operand x) { return celu(x, 0); },
            {"alpha must be a finite number other than 0, not 0"}),
    refused("hard_tanh", "bounds the wrong way round", [](Operand x) { return hard_tanh(x, 2, 1.5); },
            {"low (2) must not be above high (1.5)"}),
    {"relu6 of integers",
     "relu6",
     [](Graph& graph) {
       relu6(graph.input("x", {DType::int64, {2}}));
     },
     {"int64[2]", "floating", "cast()"}},
    {"prelu, slopes for other channels",
     "prelu",
     [](Graph& graph) {
       prelu(graph.input("x", {DType::float32, {2, 3}}), graph.input("slope", {DType::float32, {2}}));
     },
     {"float32[2,3]", "float32[2]", "{C}", "reshape"}},
    {"prelu of two dtypes",
     "prelu",
     [](Graph& graph) {
       prelu(graph.input("x", {DType::float32, {2, 3}}), graph.input("slope", {DType::float64, {3}}));
     },
     {"one dtype", "cast()"}},
});

struct Result {
  std::vector<double> values;
  std::vector<double> slopes;
};

Result at(Node (*function)(Operand), DType dtype, const std::vector<double>& values) {
  Graph graph;
  const Tensor input = Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values).cast(dtype);
  const Node x = graph.input("x", input.type());
  const Node y = function(x);
  const auto results = Runner(graph, {y, gradients(sum(y), {x})[0]}, test_backend())({input});
  return {results[0].to_doubles(), results[1].to_doubles()};
}

}  // namespace

TEST_CASE("activations: values, gradients, second derivatives") {
  check_all(cases);
  check_all(special_cases);
}

TEST_CASE("activations: what they refuse") {
  check_all(wrong_types);
  check_all(wrong);
}

TEST_CASE("the gradients of activations at their kinks are PyTorch's") {
  CHECK(at(hard_swish, DType::float64, {-3, 0, 3}).slopes == std::vector<double>{0, 0.5, 1});
  CHECK(at(hard_sigmoid, DType::float64, {-3, 0, 3}).slopes == std::vector<double>{0, 1.0 / 6, 0});
  CHECK(at([](Operand x) { return hard_tanh(x); }, DType::float64, {-1, 0, 1}).slopes ==
        std::vector<double>{0, 1, 0});
  CHECK(at(relu6, DType::float64, {0, 1, 6}).slopes == std::vector<double>{0, 1, 0});
  CHECK(at([](Operand x) { return elu(x, 0.5); }, DType::float64, {0, 1}).slopes ==
        std::vector<double>{0.5, 1});
  CHECK(at([](Operand x) { return celu(x, 0.5); }, DType::float64, {0, 1}).slopes ==
        std::vector<double>{1, 1});
  CHECK(at(selu, DType::float64, {0}).slopes[0] ==
        doctest::Approx(1.0507009873554805 * 1.6732632423543772).epsilon(1e-12));
  CHECK(at(softsign, DType::float64, {0}).slopes == std::vector<double>{1});
}

TEST_CASE("activations do not overflow, and keep a NaN") {
  for (const DType dtype : {DType::float64, DType::float32})
    for (Node (*function)(Operand) :
         {log_sigmoid, softsign, silu, mish, selu, hard_sigmoid, hard_swish, relu6}) {
      const Result result = at(function, dtype, {-1e4, 1e4, nan});
      CHECK(std::isfinite(result.values[0]));
      CHECK(std::isfinite(result.values[1]));
      CHECK(std::isnan(result.values[2]));
      CHECK(std::isfinite(result.slopes[0]));
      CHECK(std::isfinite(result.slopes[1]));
    }
  CHECK(at(log_sigmoid, DType::float64, {-800}).values[0] == -800);
  CHECK(at(mish, DType::float64, {-40}).values[0] == doctest::Approx(-40 * std::exp(-40.0)));
}

}  // namespace plexaura::testing::activations_test
