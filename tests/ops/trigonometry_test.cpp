#include "core/ops/trigonometry.h"

#include <cmath>
#include <complex>
#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/function_cases.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::trigonometry_test {

namespace {

using reference::elementwise;

double sine(double x) { return std::imag(std::polar(1.0, x)); }
double cosine(double x) { return std::real(std::polar(1.0, x)); }
double exponential_sine(double x) { return (std::exp(x) - std::exp(-x)) / 2; }
double exponential_cosine(double x) { return (std::exp(x) + std::exp(-x)) / 2; }

const std::vector<UnaryFunction> functions{
    {"sin", sin, between(-4, 4), sine},
    {"cos", cos, between(-4, 4), cosine},
    {"tan", tan, between(-1, 1), [](double x) { return sine(x) / cosine(x); }},
    {"asin", asin, between(-0.9, 0.9), [](double x) { return std::atan2(x, std::sqrt(1 - x * x)); }},
    {"acos", acos, between(-0.9, 0.9), [](double x) { return std::atan2(std::sqrt(1 - x * x), x); }},
    {"atan", atan, between(-3, 3), [](double x) { return std::atan2(x, 1.0); }},
    {"sinh", sinh, between(-2, 2), exponential_sine},
    {"cosh", cosh, between(-2, 2), exponential_cosine},
    {"asinh", asinh, between(-3, 3),
     [](double x) { return std::copysign(std::log(std::fabs(x) + std::sqrt(x * x + 1)), x); }},
    {"acosh", acosh, between(1.2, 4), [](double x) { return std::log(x + std::sqrt(x * x - 1)); }},
    {"atanh", atanh, between(-0.8, 0.8), [](double x) { return std::log((1 + x) / (1 - x)) / 2; }},
};

OpCase of_two(const std::string& op, Node (*build)(Operand, Operand), double (*expected)(double, double),
              Shape a, Shape b) {
  return {op + " of " + to_string(a) + " and " + to_string(b),
          op,
          [=](Graph&, auto x) { return std::vector{build(x[0], x[1])}; },
          {{std::move(a), away_from_zero(0.3)}, {std::move(b), away_from_zero(0.3)}},
          elementwise(expected)};
}

double length(double a, double b) { return std::sqrt(a * a + b * b); }
double angle(double a, double b) { return std::arg(std::complex<double>(b, a)); }

const Cases cases(made_of(functions, case_of));
const Cases cases_of_two({
    of_two("hypot", hypot, length, {3, 5}, {3, 5}),
    of_two("hypot", hypot, length, {3, 1}, {4}),
    of_two("atan2", atan2, angle, {3, 5}, {3, 5}),
    of_two("atan2", atan2, angle, {5}, {3, 1}),
});
const WrongCases wrong_types(made_of(functions, of_integers));
const WrongCases wrong({of_two_dtypes("hypot", hypot), of_two_dtypes("atan2", atan2)});

}  // namespace

TEST_CASE("trigonometric functions: values, gradients, second derivatives") {
  check_all(cases);
  check_all(cases_of_two);
}

TEST_CASE("trigonometric functions: what they refuse") {
  check_all(wrong_types);
  check_all(wrong);
}

TEST_CASE("hypot does not overflow in between, and the gradients of hypot and atan2 are 0 at the origin") {
  Graph graph;
  const Node a = graph.input("a", {DType::float32, {2}});
  const Node b = graph.input("b", {DType::float32, {2}});
  const Node y = hypot(a, b);
  std::vector<Node> wanted{y};
  for (const Node& grad : gradients(sum(y), {a, b})) wanted.push_back(grad);
  for (const Node& grad : gradients(sum(atan2(a, b)), {a, b})) wanted.push_back(grad);
  const Tensor values = Tensor::of<float>({2}, {3e30F, 0});
  const auto results = Runner(graph, wanted, test_backend())({values, values});
  CHECK(results[0].to_doubles()[0] == doctest::Approx(3e30 * std::sqrt(2.0)));
  for (std::size_t i = 1; i < results.size(); ++i) CHECK(results[i].to_doubles()[1] == 0);
  CHECK(results[1].to_doubles()[0] == doctest::Approx(std::sqrt(0.5)));
}

TEST_CASE("outside of their domains inverse functions are NaN, and at the ends infinite or exact") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {3}});
  const auto results = Runner(graph, {asin(x), acos(x), acosh(x), atanh(x)},
                              test_backend())({Tensor::of<double>({3}, {1, -2, -1})});
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Tensor& y : results) CHECK(std::isnan(y.to_doubles()[1]));
  CHECK(results[1].to_doubles()[0] == 0);
  CHECK(results[2].to_doubles()[0] == 0);
  CHECK(results[3].to_doubles()[0] == infinity);
  CHECK(results[3].to_doubles()[2] == -infinity);
}

TEST_CASE("the gradients of asinh and acosh are right where x^2 overflows") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {}});
  const auto results = Runner(graph, {gradients(asinh(x), {x})[0], gradients(acosh(x), {x})[0]},
                              test_backend())({Tensor::scalar(1e25F)});
  CHECK(results[0].to_doubles()[0] == doctest::Approx(1e-25));
  CHECK(results[1].to_doubles()[0] == doctest::Approx(1e-25));
}

}  // namespace plexaura::testing::trigonometry_test
