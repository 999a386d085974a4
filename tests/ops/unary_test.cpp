#include "core/ops/unary.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/error.h"
#include "core/ops/reduce.h"
#include "core/testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing {

namespace {

using reference::elementwise;

OpCase unary(const std::string& op, Node (*function)(Operand), Values values, double (*expected)(double)) {
  return {op,
          op,
          [=](Graph&, auto x) { return std::vector{function(x[0])}; },
          {{{3, 5}, std::move(values)}},
          elementwise(expected)};
}

OpCase with_shape(OpCase op_case, const std::string& name, Shape shape) {
  op_case.name += ", " + name;
  op_case.inputs[0].shape = std::move(shape);
  return op_case;
}

double positive_part(double x) { return x > 0 ? x : 0; }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double same(double x) { return x; }
double whole_part(double x) { return std::trunc(x); }
double is_not_zero(double x) { return x != 0 ? 1 : 0; }
double as_float(double x) { return static_cast<double>(static_cast<float>(x)); }
// A long double holds e^x for every x here, so that the definition needs no care.
double log_one_plus_exp(double x) {
  return static_cast<double>(std::log1p(std::exp(static_cast<long double>(x))));
}

BuildFunction to(DType dtype) {
  return [=](Graph&, auto x) { return std::vector{cast(x[0], dtype)}; };
}

const Cases cases({
    unary("neg", neg, between(-2, 2), [](double x) { return -x; }),
    unary("abs", abs, away_from_zero(), std::fabs),
    unary("exp", exp, between(-2, 2), std::exp),
    unary("log", log, between(0.2, 3), std::log),
    unary("sqrt", sqrt, between(0.2, 3), std::sqrt),
    unary("square", square, between(-2, 2), [](double x) { return x * x; }),
    unary("sigmoid", sigmoid, between(-4, 4), logistic),
    unary("tanh", tanh, between(-2, 2), std::tanh),
    unary("relu", relu, away_from_zero(), positive_part),
    unary("softplus", softplus, between(-4, 4), log_one_plus_exp),
    with_shape(unary("softplus", softplus, between(-20, 20), log_one_plus_exp), "far from zero", {40}),
    with_shape(unary("relu", relu, away_from_zero(), positive_part), "a scalar", {}),
    with_shape(unary("relu", relu, away_from_zero(), positive_part), "empty", {2, 0, 3}),
    with_shape(unary("tanh", tanh, between(-2, 2), std::tanh), "several pieces", {3, 9001}),
    with_shape(unary("exp", exp, between(-2, 2), std::exp), "17 channels", {2, 17, 3, 5}),
    {"relu_grad",
     "relu_grad",
     [](Graph&, auto x) { return std::vector{relu_grad(x[0], x[1])}; },
     {{{3, 5}}, {{3, 5}, away_from_zero()}},
     elementwise([](double grad, double y) { return y > 0 ? grad : 0; })},
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

WrongCase of_integers(const std::string& op, Node (*function)(Operand)) {
  return {op + " of integers",
          op,
          [=](Graph& graph) {
            function(graph.input("x", {DType::int64, {2}}));
          },
          {"int64[2]", "floating", "cast()"}};
}

const WrongCases wrong({
    of_integers("neg", neg),
    of_integers("abs", abs),
    of_integers("exp", exp),
    of_integers("log", log),
    of_integers("sqrt", sqrt),
    of_integers("square", square),
    of_integers("sigmoid", sigmoid),
    of_integers("tanh", tanh),
    of_integers("relu", relu),
    of_integers("softplus", softplus),
    {"relu_grad of two shapes",
     "relu_grad",
     [](Graph& graph) {
       relu_grad(graph.input("g", {DType::float32, {2}}), graph.input("y", {DType::float32, {3}}));
     },
     {"one type and shape", "float32[2]", "float32[3]"}},
});

std::vector<double> apply_to(Node (*function)(Operand), DType dtype, const std::vector<double>& values) {
  Graph graph;
  const Tensor input = Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values).cast(dtype);
  const Node y = function(graph.input("x", input.type()));
  return Runner(graph, {y}, test_backend())({input})[0].to_doubles();
}

}  // namespace

TEST_CASE("unary ops: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("unary ops: what they refuse") { check_all(wrong); }

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

TEST_CASE("a cast to integers truncates, and takes the nearest value where there is no room") {
  const auto to_int32 = [](Operand x) { return cast(x, DType::int32); };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(apply_to(+to_int32, DType::float64, {-1.9, 1.9, 1e20, -1e20, nan}) ==
        std::vector<double>{-1, 1, 2147483647.0, -2147483648.0, 0});
}

TEST_CASE("the gradient of relu is no integer") {
  Graph graph;
  const Node x = graph.input("x", {DType::int64, {2}});
  CHECK_THROWS_AS(relu_grad(x, x), UserError);
}

}  // namespace plexaura::testing
