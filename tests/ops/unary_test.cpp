#include "core/ops/unary.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/function_cases.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::unary_test {

namespace {

using reference::elementwise;

double positive_part(double x) { return x > 0 ? x : 0; }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double same(double x) { return x; }
double whole_part(double x) { return std::trunc(x); }
double is_not_zero(double x) { return x != 0 ? 1 : 0; }
double as_float(double x) { return static_cast<double>(static_cast<float>(x)); }
// A long double can represent e^x for every x here, so the definition is exact enough.
double log_one_plus_exp(double x) {
  return static_cast<double>(std::log1p(std::exp(static_cast<long double>(x))));
}

double normal_share(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
double gelu_by_tanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * std::pow(x, 3))));
}

double nearest_even(double x) {
  const double below = std::floor(x);
  if (x - below != 0.5) return std::floor(x + 0.5);
  return std::fmod(below, 2) == 0 ? below : below + 1;
}

// Each function makes one case and one wrong case.
const std::vector<UnaryFunction> functions{
    {"neg", neg, between(-2, 2), [](double x) { return -x; }},
    {"abs", abs, away_from_zero(), std::fabs},
    {"exp", exp, between(-2, 2), std::exp},
    {"log", log, between(0.2, 3), std::log},
    {"sqrt", sqrt, between(0.2, 3), std::sqrt},
    {"square", square, between(-2, 2), [](double x) { return x * x; }},
    {"sigmoid", sigmoid, between(-4, 4), logistic},
    {"tanh", tanh, between(-2, 2), std::tanh},
    {"relu", relu, away_from_zero(), positive_part},
    {"softplus", softplus, between(-4, 4), log_one_plus_exp},
    {"erf", erf, between(-3, 3), std::erf},
    {"gelu", [](Operand x) { return gelu(x); }, between(-4, 4), [](double x) { return x * normal_share(x); }},
    {"gelu_tanh", [](Operand x) { return gelu(x, {.tanh = true}); }, between(-4, 4), gelu_by_tanh},
    {"leaky_relu", [](Operand x) { return leaky_relu(x, 0.1); }, away_from_zero(),
     [](double x) { return std::max(x, 0.1 * x); }},
    {"leaky_relu", [](Operand x) { return leaky_relu(x, 0.25); }, away_from_zero(),
     [](double x) { return std::max(x, 0.25 * x); }},
    {"clip", [](Operand x) { return clip(x, -0.7, 1.1); }, distinct(0.3),
     [](double x) { return std::clamp(x, -0.7, 1.1); }},
    {"cube", cube, away_from_zero(0.2), [](double x) { return x * x * x; }},
    {"rsqrt", rsqrt, between(0.2, 3), [](double x) { return 1 / std::sqrt(x); }},
    {"exp2", exp2, between(-2, 2), [](double x) { return std::pow(2.0, x); }},
    {"expm1", expm1, between(-2, 2), [](double x) { return std::exp(x) - 1; }},
    {"log2", log2, between(0.2, 3), [](double x) { return std::log(x) / std::log(2.0); }},
    {"log10", log10, between(0.2, 3), [](double x) { return std::log(x) / std::log(10.0); }},
    {"log1p", log1p, between(-0.8, 3), [](double x) { return std::log(1 + x); }},
};

void halves(std::span<double> values, Random& random) {
  for (double& value : values) value = static_cast<double>(random.below(20)) / 2 - 5;
}

const std::vector<UnaryFunction> steps{
    {"sign", sign, away_from_zero(), [](double x) { return x > 0 ? 1.0 : -1.0; }},
    {"ceil", ceil, between(-4, 4), std::ceil},
    {"floor", floor, between(-4, 4), std::floor},
    {"round", round, halves, nearest_even},
    {"trunc", trunc, between(-4, 4), std::trunc},
};

const UnaryFunction& function_of(std::string_view op) {
  return *std::ranges::find(functions, op, [](const UnaryFunction& of) { return of.op; });
}

BuildFunction to(DType dtype) {
  return [=](Graph&, auto x) { return std::vector{cast(x[0], dtype)}; };
}

const Cases cases(made_of(functions, case_of));

OpCase with_shape(std::string_view op, const std::string& name, Shape shape) {
  OpCase op_case = case_of(function_of(op));
  op_case.name += ", " + name;
  op_case.inputs[0].shape = std::move(shape);
  return op_case;
}

const Cases step_cases(made_of(steps, case_of_step));
const WrongCases wrong_types_of_steps(made_of(steps, of_integers));

const Cases special_cases({
    {"reciprocal",
     "div",
     [](Graph&, auto x) { return std::vector{reciprocal(x[0])}; },
     {{{3, 5}, away_from_zero(0.3)}},
     elementwise([](double x) { return 1 / x; })},
    {"softplus, far from zero",
     "softplus",
     [](Graph&, auto x) { return std::vector{softplus(x[0])}; },
     {{{40}, between(-20, 20)}},
     elementwise(log_one_plus_exp)},
    with_shape("relu", "a scalar", {}),
    with_shape("relu", "empty", {2, 0, 3}),
    with_shape("tanh", "several pieces", {3, 9001}),
    with_shape("exp", "17 channels", {2, 17, 3, 5}),
    with_shape("gelu", "17 channels", {2, 17, 3, 5}),
    {"stop_gradient",
     "stop_gradient",
     [](Graph&, auto x) { return std::vector{stop_gradient(x[0])}; },
     {{{3, 5}}},
     elementwise(same),
     false},
    {"cast to float64", "cast", to(DType::float64), {{{3, 5}}}, elementwise(same)},
    {"cast to float32",
     "cast",
     to(DType::float32),
     {{{3, 5}}},
     elementwise(as_float),
     false,
     false,
     {DType::float64, DType::bfloat16}},
    {"cast to int32", "cast", to(DType::int32), {{{3, 5}, between(-9, 9)}}, elementwise(whole_part), false},
    {"cast to bool", "cast", to(DType::boolean), {{{3, 5}, whole(0, 2)}}, elementwise(is_not_zero), false},
    {"cast of int64",
     "cast",
     to(DType::float64),
     {{{3, 5}, whole(-9, 9), DType::int64}},
     elementwise(same),
     false},
    {"cast of bool",
     "cast",
     to(DType::float64),
     {{{3, 5}, whole(0, 2), DType::boolean}},
     elementwise(same),
     false},
});

const WrongCases wrong_types(made_of(functions, of_integers));
const WrongCases wrong({
    {"reciprocal of integers",
     "reciprocal",
     [](Graph& graph) {
       reciprocal(graph.input("x", {DType::int64, {2}}));
     },
     {"int64[2]", "floating", "cast()"}},
    {"leaky_relu with a slope that is no number",
     "leaky_relu",
     [](Graph& graph) {
       leaky_relu(graph.input("x", {DType::float32, {2}}), std::numeric_limits<double>::quiet_NaN());
     },
     {"the slope must be a finite number, not nan"}},
    {"clip to nothing",
     "clip",
     [](Graph& graph) {
       clip(graph.input("x", {DType::float32, {2}}), 2, 1.5);
     },
     {"low (2) must not be above high (1.5)"}},
});

std::vector<double> apply_to(Node (*function)(Operand), DType dtype, const std::vector<double>& values) {
  Graph graph;
  const Tensor input = Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values).cast(dtype);
  const Node y = function(graph.input("x", input.type()));
  return Runner(graph, {y}, test_backend())({input})[0].to_doubles();
}

}  // namespace

TEST_CASE("unary ops: values, gradients, second derivatives") {
  check_all(cases);
  check_all(step_cases);
  check_all(special_cases);
}

TEST_CASE("unary ops: what they refuse") {
  check_all(wrong_types);
  check_all(wrong_types_of_steps);
  check_all(wrong);
}

TEST_CASE("a step keeps a NaN and the sign of a zero, and passes no gradient") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::float64, DType::float32})
    for (Node (*step)(Operand) : {sign, ceil, floor, round, trunc}) {
      const std::vector<double> y = apply_to(step, dtype, {nan, -0.0, 0.0});
      CHECK(std::isnan(y[0]));
      CHECK(y[1] == 0);
      CHECK(std::signbit(y[1]));
      CHECK(!std::signbit(y[2]));
      Graph graph;
      const Node x = graph.input("x", {dtype, {2}});
      CHECK(gradients_or_empty(sum(step(x)), std::vector{x})[0].is_empty());
      CHECK(gradients(sum(x * step(x)), {x})[0].type() == x.type());
    }
}

TEST_CASE("expm1 and log1p keep the digits of small numbers, and rsqrt is infinite at 0") {
  CHECK(apply_to(expm1, DType::float64, {1e-17})[0] == 1e-17);
  CHECK(apply_to(log1p, DType::float64, {1e-17})[0] == 1e-17);
  CHECK(apply_to(rsqrt, DType::float32, {0})[0] == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(apply_to(log1p, DType::float32, {-2})[0]));
}

TEST_CASE("at its kink the gradient of abs is 0, and so is that of relu") {
  const Tensor values = Tensor::of<double>({3}, {-2, 0, 3});
  const auto slope = [&](Node (*function)(Operand)) {
    Graph graph;
    const Node x = graph.input("x", values.type());
    return Runner(graph, gradients(sum(function(x)), {x}), test_backend())({values})[0].to_doubles();
  };
  CHECK(slope(abs) == std::vector<double>{-1, 0, 1});
  CHECK(slope(relu) == std::vector<double>{0, 0, 1});
}

TEST_CASE("leaky_relu has its slope at 0, and clip passes gradients at its bounds") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {4}});
  const std::vector<Node> grads{gradients(sum(leaky_relu(x, 0.25)), {x})[0],
                                gradients(sum(clip(x, 0, 2)), {x})[0]};
  const auto slopes = Runner(graph, grads, test_backend())({Tensor::of<double>({4}, {-1, 0, 2, 3})});
  CHECK(slopes[0].to_doubles() == std::vector<double>{0.25, 0.25, 1, 1});
  CHECK(slopes[1].to_doubles() == std::vector<double>{0, 1, 1, 0});
}

TEST_CASE("clip and leaky_relu with other numbers are different ops") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2}});
  const auto same = [&](const Node& a, const Node& b) {
    return *graph.record(a.id()).op == *graph.record(b.id()).op;
  };
  CHECK(same(clip(x, 0, 1), clip(x, 0, 1)));
  CHECK(!same(clip(x, 0, 1), clip(x, 0, 2)));
  CHECK(!same(clip(x, 0, 1), clip(x, -1, 1)));
  CHECK(!same(leaky_relu(x, 0.1), leaky_relu(x, 0.2)));
}

TEST_CASE("infinities stay what they are in every floating type") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    CAPTURE(name_of(dtype));
    Graph graph;
    const Node x = graph.input("x", {DType::float64, {2}});
    const auto results =
        Runner(graph, {cast(cast(x, dtype), DType::float64), cast(-cast(x, dtype), DType::float64)},
               test_backend())({Tensor::of<double>({2}, {infinity, -infinity})});
    CHECK(results[0].to_doubles() == std::vector<double>{infinity, -infinity});
    CHECK(results[1].to_doubles() == std::vector<double>{-infinity, infinity});
  }
}

TEST_CASE("clip keeps a NaN and may have one side") {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto at_least_one = [](Operand x) { return clip(x, 1, std::numeric_limits<double>::infinity()); };
  const std::vector<double> y = apply_to(+at_least_one, DType::float32,
                                         {std::numeric_limits<double>::quiet_NaN(), -infinity, infinity});
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == 1);
  CHECK(y[2] == infinity);
}

TEST_CASE("softplus is right where e^x is not") {
  CHECK(apply_to(softplus, DType::float64, {-800, 800}) == std::vector<double>{0, 800});
}

TEST_CASE("sigmoid does not overflow") {
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16}) {
    const std::vector<double> y = apply_to(sigmoid, dtype, {-1e4, -60, 0, 60, 1e4});
    CHECK(y[0] == 0);
    CHECK(y[1] == doctest::Approx(std::exp(-60.0)).epsilon(0.3));
    CHECK(y[2] == 0.5);
    CHECK(y[4] == 1);
  }
}

TEST_CASE("relu keeps a NaN, so that nobody misses it") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> y = apply_to(relu, DType::float32, {nan, -1, 2});
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == 0);
  CHECK(y[2] == 2);
}

TEST_CASE("the gradient of relu is 0 where its input is no number") {
  for (const DType dtype : {DType::float64, DType::float32}) {
    Graph graph;
    const Node x = graph.input("x", {dtype, {4}});
    const Node grad = gradients(sum(relu(x) * graph.input("grad", {dtype, {4}})), {x})[0];
    Runner run(graph, {grad}, test_backend());
    const Tensor values = Tensor::of<double>({4}, {1, std::nan(""), -1, 2}).cast(dtype);
    CHECK(run({values, Tensor::of<double>({4}, {5, 6, 7, 8}).cast(dtype)})[0].to_doubles() ==
          std::vector<double>{5, 0, 0, 8});
  }
}

TEST_CASE("a cast to integers truncates, and takes the nearest value where there is no room") {
  const auto to_int32 = [](Operand x) { return cast(x, DType::int32); };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(apply_to(+to_int32, DType::float64, {-1.9, 1.9, 1e20, -1e20, nan}) ==
        std::vector<double>{-1, 1, 2147483647.0, -2147483648.0, 0});
}

}  // namespace plexaura::testing::unary_test
