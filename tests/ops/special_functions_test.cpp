#include "core/ops/special_functions.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/function_cases.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::special_functions_test {

namespace {

// Finds the inverse by bisection, since erf increases.
double inverse_of_erf(double y) {
  double low = -7;
  double high = 7;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (std::erf(middle) < y ? low : high) = middle;
  }
  return high;
}

// The sum of (x + k)^-s over k, whose tail is its integral from half a step before, with the first correction.
long double power_sum(long double x, int s) {
  constexpr int terms = 2000;
  long double total = 0;
  for (int k = terms; k-- > 0;) total += std::pow(x + k, static_cast<long double>(-s));
  const long double end = x + terms - 0.5L;
  return total + std::pow(end, 1.0L - s) / (s - 1) - s * std::pow(end, -1.0L - s) / 24;
}

// The limit of log(n) - sum of 1 / (x + k) for k = 0, ..., n.
double digamma_by_terms(double x) {
  constexpr int terms = 2000;
  long double total = 0;
  for (int k = terms; k-- > 0;) total -= 1 / (static_cast<long double>(x) + k);
  const long double end = static_cast<long double>(x) + terms - 0.5L;
  return static_cast<double>(total + std::log(end) + 1 / (24 * end * end));
}

double trigamma_by_terms(double x) { return static_cast<double>(power_sum(x, 2)); }
double tetragamma_by_terms(double x) { return static_cast<double>(-2 * power_sum(x, 3)); }

// Numbers of either sign that are not close to whole numbers.
void of_either_sign(std::span<double> values, Random& random) {
  for (double& value : values) value = static_cast<double>(random.below(9)) - 4 + random.between(0.25, 0.75);
}

const std::vector<UnaryFunction> functions{
    {"erfc", erfc, between(-3, 3), [](double x) { return 1 - std::erf(x); }},
    {"erfinv",
     erfinv,
     between(-0.95, 0.95),
     inverse_of_erf,
     {.float32 = 1e-5, .bfloat16 = 6e-2, .float16 = 1e-2}},
    {"lgamma", lgamma, between(0.3, 6), [](double x) { return std::log(std::tgamma(x)); }, {.float32 = 4e-6}},
    {"polygamma", digamma, between(0.3, 6), digamma_by_terms, {.float32 = 4e-6}},
};

OpCase named(OpCase op_case, const std::string& name) {
  op_case.name = name;
  return op_case;
}

const Cases cases(made_of(functions, case_of));
const Cases polygamma_cases({
    named(case_of({"polygamma", digamma, of_either_sign, digamma_by_terms, {.float32 = 1e-5}}),
          "digamma of either sign"),
    named(case_of({"polygamma",
                   [](Operand x) { return polygamma(1, x); },
                   of_either_sign,
                   trigamma_by_terms,
                   {.float32 = 1e-5}}),
          "polygamma of order 1"),
    named(case_of({"polygamma",
                   [](Operand x) { return polygamma(2, x); },
                   of_either_sign,
                   tetragamma_by_terms,
                   {.float32 = 1e-5}}),
          "polygamma of order 2"),
});
const WrongCases wrong_types(made_of(functions, of_integers));
const WrongCases wrong({
    {"polygamma of a negative order",
     "polygamma",
     [](Graph& graph) {
       polygamma(-1, graph.input("x", {DType::float32, {2}}));
     },
     {"float32[2]", "must not be negative, but is -1"}},
});

std::vector<double> apply_to(Node (*function)(Operand), DType dtype, const std::vector<double>& values) {
  Graph graph;
  const Tensor input = Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values).cast(dtype);
  return Runner(graph, {function(graph.input("x", input.type()))}, test_backend())({input})[0].to_doubles();
}

}  // namespace

TEST_CASE("special functions: values, gradients, second derivatives") {
  check_all(cases);
  check_all(polygamma_cases);
}

TEST_CASE("special functions: what they refuse") {
  check_all(wrong_types);
  check_all(wrong);
}

TEST_CASE("erfinv is exact to the ends, infinite there and NaN beyond") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::float64, DType::float32}) {
    const std::vector<double> y = apply_to(erfinv, dtype, {-1, 1, 1.5, 0, 1e-30});
    CHECK(y[0] == -infinity);
    CHECK(y[1] == infinity);
    CHECK(std::isnan(y[2]));
    CHECK(y[3] == 0);
    CHECK(y[4] == doctest::Approx(0.886226925452758e-30));
  }
  const double almost_one = std::nextafter(1.0, 0.0);
  CHECK(std::erfc(apply_to(erfinv, DType::float64, {almost_one})[0]) ==
        doctest::Approx(1 - almost_one).epsilon(1e-12));
}

TEST_CASE("erfc does not round to 0 where 1 - erf does") {
  CHECK(apply_to(erfc, DType::float64, {10})[0] == doctest::Approx(2.0884875837625446e-45));
}

TEST_CASE("digamma and its kin at poles, far from zero and without a number") {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto trigamma = [](Operand x) { return polygamma(1, x); };
  for (const DType dtype : {DType::float64, DType::float32}) {
    const std::vector<double> first = apply_to(digamma, dtype, {0, -3, 1e8, infinity});
    CHECK(first[0] == -infinity);
    CHECK(std::isnan(first[1]));
    CHECK(first[2] == doctest::Approx(std::log(1e8)));
    CHECK(first[3] == infinity);
    const std::vector<double> second = apply_to(+trigamma, dtype, {0, -3, infinity, -100.5, std::nan("")});
    CHECK(second[0] == infinity);
    CHECK(second[1] == infinity);
    CHECK(second[2] == 0);
    CHECK(second[3] == doctest::Approx(std::pow(std::acos(-1.0), 2) - 1 / 101.0).epsilon(1e-4));
    CHECK(std::isnan(second[4]));
    CHECK(apply_to(+trigamma, dtype, {1e30})[0] * 1e30 == doctest::Approx(1).epsilon(1e-6));
    CHECK(apply_to(lgamma, dtype, {-2})[0] == infinity);
  }
}

TEST_CASE("digamma and its kin lose no digits just below 0 and near other poles") {
  const auto trigamma = [](Operand x) { return polygamma(1, x); };
  const auto tetragamma = [](Operand x) { return polygamma(2, x); };
  const double distance = std::ldexp(1.0, -40);
  const double beyond = -7 - std::ldexp(1.0, -8);
  for (const DType dtype : {DType::float64, DType::float32}) {
    const double rounding = dtype == DType::float64 ? 1e-11 : 2e-6;
    const auto is_near = [=](double value) { return doctest::Approx(value).epsilon(rounding); };
    const std::vector<double> first = apply_to(digamma, dtype, {-distance, beyond});
    CHECK(first[0] == is_near(1 / distance));
    CHECK(first[1] == is_near(digamma_by_terms(beyond)));
    const std::vector<double> second = apply_to(+trigamma, dtype, {-distance, beyond});
    CHECK(second[0] == is_near(std::pow(distance, -2)));
    CHECK(second[1] == is_near(trigamma_by_terms(beyond)));
    CHECK(apply_to(+tetragamma, dtype, {-distance})[0] == is_near(2 * std::pow(distance, -3)));
  }
}

}  // namespace plexaura::testing::special_functions_test
