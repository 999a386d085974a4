#include "core/ops/binary.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/ops/functors.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"
#include "tests/support/pattern.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::binary_test {

namespace {

using reference::elementwise;
using Function = Node (*)(Operand, Operand);
using Expectation = double (*)(double, double);

double plus(double a, double b) { return a + b; }
double minus(double a, double b) { return a - b; }
double times(double a, double b) { return a * b; }
double quotient(double a, double b) { return a / b; }
double whole_quotient(double a, double b) { return b == 0 ? 0 : std::trunc(a / b); }
double floor_of_quotient(double a, double b) { return b == 0 ? 0 : std::floor(a / b); }
double rest_of_quotient(double a, double b) { return a - b * floor_of_quotient(a, b); }
double weighted(double a, double b) { return 0.25 * a - 1.5 * b; }
double larger(double a, double b) { return a > b ? a : b; }
double smaller(double a, double b) { return a < b ? a : b; }

// -target log(sigmoid(logit)) - (1 - target) log(1 - sigmoid(logit)), where 1 - sigmoid(x) = sigmoid(-x).
double binary_cross_entropy(double logit, double target) {
  const auto log_of_sigmoid = [](double x) { return std::log(1 / (1 + std::exp(-x))); };
  return -target * log_of_sigmoid(logit) - (1 - target) * log_of_sigmoid(-logit);
}

OpCase binary(const std::string& op, Function function, Expectation expected, Shape a, Shape b,
              Values of_b = between(-2, 2)) {
  return {op + " of " + to_string(a) + " and " + to_string(b),
          op,
          [=](Graph&, auto x) { return std::vector{function(x[0], x[1])}; },
          {{std::move(a), between(-2, 2)}, {std::move(b), std::move(of_b)}},
          elementwise(expected)};
}

double pow_and_log(double a, double b) { return std::pow(a, b) * std::log(a); }
double pow_and_square_of_log(double a, double b) { return pow_and_log(a, b) * std::log(a); }

Node first_pow_log(Operand a, Operand b) { return pow_log(a, b, 1); }
Node second_pow_log(Operand a, Operand b) { return pow_log(a, b, 2); }
Node quarter_less(Operand a, Operand b) { return weighted_sum(a, 0.25, b, -1.5); }

// Inputs: equal operands, unequal operands, and NaN on either side.
OpCase comparison(const std::string& op, Function function, Expectation expected) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  OpCase op_case = binary(op, function, expected, {3, 1, 4}, {5, 1}, these({-1, 0, 1, 2, nan}));
  op_case.inputs[0].values = these({-1, 0, 1, 2, nan, -2, -0.0, 3, 1, 1, 0, nan});
  op_case.differentiable = false;
  return op_case;
}

double is_at_most(double a, double b) { return a < b || a == b ? 1 : 0; }
double is_at_least(double a, double b) { return is_at_most(b, a); }

OpCase of_nothing(OpCase op_case) {
  op_case.name += ", none";
  op_case.inputs = {{{0, 3}}, {{3}}};
  return op_case;
}

OpCase of_integers(OpCase op_case, DType dtype) {
  op_case.name += " of integers";
  for (CaseInput& input : op_case.inputs) {
    input.dtype = dtype;
    input.values = whole(-3, 3);
  }
  op_case.differentiable = false;
  op_case.dtypes = {DType::float64};
  return op_case;
}

OpCase with_positive_base(OpCase op_case) {
  op_case.inputs[0].values = between(0.3, 2);
  op_case.tolerances = {.bfloat16 = 6e-2};
  return op_case;
}

OpCase far_from_zero(OpCase op_case) {
  op_case.name += ", far from zero";
  op_case.inputs[0].values = between(-20, 20);
  return op_case;
}

const auto where_of = [](Graph&, auto x) { return std::vector{where(x[0], x[1], x[2])}; };
const Expected choice =
    elementwise([](double condition, double a, double b) { return condition != 0 ? a : b; });

OpCase without_gradient(OpCase op_case) {
  op_case.differentiable = false;
  return op_case;
}

const Cases cases({
    binary("add", add, plus, {3, 5}, {3, 5}),
    binary("add", add, plus, {3, 1, 5}, {4, 1}),
    binary("add", add, plus, {}, {2, 3}),
    binary("add", add, plus, {2, 0, 3}, {1, 3}),
    binary("add", add, plus, {2, 1, 3, 1, 2}, {4, 1, 5, 1}),
    binary("add", add, plus, {2, 17, 3, 5}, {17, 1, 1}),
    of_integers(binary("add", add, plus, {3, 1}, {1, 4}), DType::int64),
    binary("sub", sub, minus, {3, 5}, {5}),
    binary("sub", sub, minus, {5}, {3, 5}),
    of_integers(binary("sub", sub, minus, {3, 1}, {1, 4}), DType::int32),
    binary("mul", mul, times, {3, 5}, {3, 1}),
    binary("mul", mul, times, {1}, {1}),
    of_integers(binary("mul", mul, times, {3, 1}, {1, 4}), DType::int32),
    binary("div", div, quotient, {3, 5}, {1, 5}, away_from_zero(0.3)),
    of_integers(binary("div", div, whole_quotient, {3, 1}, {1, 4}), DType::int64),
    binary("weighted_sum", quarter_less, weighted, {3, 5}, {3, 5}),
    binary("weighted_sum", quarter_less, weighted, {2, 17, 3, 5}, {17, 1, 1}),
    binary("weighted_sum", quarter_less, weighted, {}, {2, 3}),
    binary("sigmoid_cross_entropy", sigmoid_cross_entropy, binary_cross_entropy, {3, 5}, {3, 5},
           between(0, 1)),
    binary("sigmoid_cross_entropy", sigmoid_cross_entropy, binary_cross_entropy, {3, 5}, {5}, between(0, 1)),
    far_from_zero(binary("sigmoid_cross_entropy", sigmoid_cross_entropy, binary_cross_entropy, {40}, {40},
                         between(0, 1))),
    binary("maximum", maximum, larger, {3, 5}, {5}),
    binary("maximum", maximum, larger, {0, 3}, {3}),
    binary("maximum", maximum, larger, {3, 1}, {2, 1, 4}),
    of_integers(binary("maximum", maximum, larger, {3, 1}, {1, 4}), DType::int64),
    binary("minimum", minimum, smaller, {3, 5}, {3, 1}),
    binary("minimum", minimum, smaller, {0, 3}, {3}),
    with_positive_base(binary("pow", pow, std::pow, {3, 5}, {3, 5})),
    with_positive_base(binary("pow", pow, std::pow, {3, 1}, {4})),
    with_positive_base(binary("pow_log", first_pow_log, pow_and_log, {3, 1}, {4})),
    with_positive_base(binary("pow_log", second_pow_log, pow_and_square_of_log, {3, 5}, {3, 5})),
    binary("mul_no_nan", mul_no_nan, times, {3, 5}, {3, 1}),
    binary("mul_no_nan", mul_no_nan, times, {5}, {3, 5}),
    {"pow, a whole exponent",
     "pow",
     [](Graph&, auto x) { return std::vector{pow(x[0], 3)}; },
     {{{3, 5}, away_from_zero(0.3)}},
     elementwise([](double x) { return x * x * x; })},
    without_gradient(binary("floor_div", floor_div, floor_of_quotient, {3, 5}, {1, 5}, away_from_zero(0.3))),
    of_integers(binary("floor_div", floor_div, floor_of_quotient, {3, 1}, {1, 4}), DType::int64),
    binary("mod", mod, rest_of_quotient, {3, 5}, {1, 5}, away_from_zero(0.3)),
    of_integers(binary("mod", mod, rest_of_quotient, {3, 1}, {1, 4}), DType::int32),
    comparison("eq", eq, [](double a, double b) { return a == b ? 1.0 : 0.0; }),
    comparison("ne", ne, [](double a, double b) { return a == b ? 0.0 : 1.0; }),
    comparison("lt", lt, [](double a, double b) { return a < b ? 1.0 : 0.0; }),
    comparison("le", le, is_at_most),
    of_nothing(comparison("le", le, is_at_most)),
    comparison("gt", gt, [](double a, double b) { return b < a ? 1.0 : 0.0; }),
    comparison("ge", ge, is_at_least),
    of_nothing(comparison("ge", ge, is_at_least)),
    {"where", "where", where_of, {{{3, 5}, whole(0, 2), DType::boolean}, {{3, 5}}, {{3, 5}}}, choice},
    {"where, everything broadcast",
     "where",
     where_of,
     {{{4, 1, 1}, whole(0, 2), DType::boolean}, {{3, 1}}, {{5}}},
     choice},
});

Node input(Graph& graph, const char* name, DType dtype, Shape shape) {
  return graph.input(name, {dtype, std::move(shape)});
}

WrongCase mixed(const std::string& op, Function function) {
  return {op + " of two dtypes",
          op,
          [=](Graph& graph) {
            function(input(graph, "a", DType::float32, {2}), input(graph, "b", DType::float64, {2}));
          },
          {"float32[2]", "float64[2]", "cast()"}};
}

WrongCase of_whole_numbers(const std::string& op, Function function) {
  return {op + " of integers",
          op,
          [=](Graph& graph) {
            function(input(graph, "a", DType::int64, {2}), input(graph, "b", DType::int64, {2}));
          },
          {"floating", "int64", "cast()"}};
}

const WrongCases wrong({
    of_whole_numbers("pow", pow),
    of_whole_numbers("pow_log", first_pow_log),
    of_whole_numbers("mul_no_nan", mul_no_nan),
    of_whole_numbers("weighted_sum", quarter_less),
    of_whole_numbers("sigmoid_cross_entropy", sigmoid_cross_entropy),
    mixed("add", add),
    mixed("sub", sub),
    mixed("mul", mul),
    mixed("div", div),
    mixed("weighted_sum", quarter_less),
    mixed("sigmoid_cross_entropy", sigmoid_cross_entropy),
    mixed("floor_div", floor_div),
    mixed("mod", mod),
    mixed("maximum", maximum),
    mixed("minimum", minimum),
    mixed("pow", pow),
    mixed("pow_log", first_pow_log),
    mixed("mul_no_nan", mul_no_nan),
    mixed("eq", eq),
    mixed("ne", ne),
    mixed("lt", lt),
    mixed("le", le),
    mixed("gt", gt),
    mixed("ge", ge),
    {"add of shapes that do not broadcast",
     "add",
     [](Graph& graph) {
       add(input(graph, "a", DType::float32, {2, 3}), input(graph, "b", DType::float32, {4}));
     },
     {"float32[2,3]", "float32[4]", "do not broadcast", "3 and 4", "reshape"}},
    {"add of bools",
     "add",
     [](Graph& graph) {
       add(input(graph, "a", DType::boolean, {2}), input(graph, "b", DType::boolean, {2}));
     },
     {"bool", "cast()"}},
    {"where with numbers as a condition",
     "where",
     [](Graph& graph) {
       where(input(graph, "a", DType::float32, {2}), input(graph, "b", DType::float32, {2}), 0);
     },
     {"condition must be bool"}},
});

}  // namespace

TEST_CASE("binary ops: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("binary ops: what they refuse") { check_all(wrong); }

TEST_CASE("integers divide towards zero, by zero gives zero, and overflow wraps around") {
  Graph graph;
  const Node a = input(graph, "a", DType::int32, {4});
  const Node b = input(graph, "b", DType::int32, {4});
  constexpr std::int32_t smallest = std::numeric_limits<std::int32_t>::min();
  Runner runner(graph, {a / b, a + b}, test_backend());
  const auto results = runner(
      {Tensor::of<std::int32_t>({4}, {-7, 7, 5, smallest}), Tensor::of<std::int32_t>({4}, {2, -2, 0, -1})});
  CHECK(results[0].to_doubles() == std::vector<double>{-3, -3, 0, smallest});
  CHECK(results[1].to_doubles() == std::vector<double>{-5, 5, 5, std::numeric_limits<std::int32_t>::max()});
}

TEST_CASE("comparisons have operators, beside numbers too") {
  Graph graph;
  const Node a = input(graph, "a", DType::float32, {3});
  const Node b = input(graph, "b", DType::float32, {3});
  const std::vector<Node> found{a<b, a <= b, a> b, a >= b, a > 2, 2 >= a};
  const std::vector<Node> meant{lt(a, b), le(a, b), gt(a, b), ge(a, b), gt(a, 2), ge(2, a)};
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(graph.record(found[i].id()).op->name() == graph.record(meant[i].id()).op->name());
  const auto results = Runner(graph, {a < b, 2 >= a}, test_backend())(
      {Tensor::of<float>({3}, {1, 2, 3}), Tensor::of<float>({3}, {2, 2, 2})});
  CHECK(results[0].to_doubles() == std::vector<double>{1, 0, 0});
  CHECK(results[1].to_doubles() == std::vector<double>{1, 1, 0});
}

TEST_CASE("+=, -=, *= and /= make a new node, and name the user's line in an error") {
  Graph graph;
  const Node a = input(graph, "a", DType::float32, {3});
  const Node b = input(graph, "b", DType::float32, {3});
  Node y = a;
  y += b;
  y *= 3;
  y -= a;
  y /= b;
  const auto results = Runner(
      graph, {y, a}, test_backend())({Tensor::of<float>({3}, {1, 2, 3}), Tensor::of<float>({3}, {2, 2, 4})});
  CHECK(results[0].to_doubles() == std::vector<double>{4, 5, 4.5});
  CHECK(results[1].to_doubles() == std::vector<double>{1, 2, 3});
  const int line = __LINE__ + 1;
  const std::string text = user_error([&] { y += input(graph, "c", DType::float32, {2}); });
  CHECK(text.find("binary_test.cpp:" + std::to_string(line)) != std::string::npos);
}

TEST_CASE("floor_div and mod round down as in Python, of integers too") {
  Graph graph;
  const Node a = input(graph, "a", DType::int32, {6});
  const Node b = input(graph, "b", DType::int32, {6});
  constexpr std::int32_t smallest = std::numeric_limits<std::int32_t>::min();
  const auto results = Runner(graph, {floor_div(a, b), mod(a, b)},
                              test_backend())({Tensor::of<std::int32_t>({6}, {-7, 7, -7, 5, smallest, -6}),
                                               Tensor::of<std::int32_t>({6}, {2, -2, -2, 0, -1, 3})});
  CHECK(results[0].to_doubles() == std::vector<double>{-4, -4, 3, 0, smallest, -2});
  CHECK(results[1].to_doubles() == std::vector<double>{1, -1, -1, 5, 0, 0});
}

TEST_CASE("floor_div and mod of bytes") {
  Graph graph;
  const Node a = input(graph, "a", DType::uint8, {3});
  const Node b = input(graph, "b", DType::uint8, {3});
  const auto results = Runner(graph, {floor_div(a, b), mod(a, b)}, test_backend())(
      {Tensor::of<std::uint8_t>({3}, {254, 200, 9}), Tensor::of<std::uint8_t>({3}, {255, 7, 0})});
  CHECK(results[0].to_doubles() == std::vector<double>{0, 28, 0});
  CHECK(results[1].to_doubles() == std::vector<double>{254, 4, 9});
}

TEST_CASE("floor_div and mod of floats at the edges") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::float64, DType::float32}) {
    Graph graph;
    const Node a = input(graph, "a", dtype, {5});
    const Node b = input(graph, "b", dtype, {5});
    const auto results = Runner(graph, {floor_div(a, b), mod(a, b)}, test_backend())(
        {Tensor::of<double>({5}, {-1, 1, 5, 6, infinity}).cast(dtype),
         Tensor::of<double>({5}, {infinity, -infinity, 0, 0.1, 2}).cast(dtype)});
    const std::vector<double> quotient = results[0].to_doubles();
    const std::vector<double> rest = results[1].to_doubles();
    CHECK(std::vector(quotient.begin(), quotient.begin() + 4) == std::vector<double>{-1, -1, infinity, 59});
    CHECK(std::isnan(quotient[4]));
    CHECK(rest[0] == infinity);
    CHECK(rest[1] == -infinity);
    CHECK(std::isnan(rest[2]));
    CHECK(std::isnan(rest[4]));
  }
}

TEST_CASE("the largest number without a sign is no minus one") {
  CHECK(functors::divide<std::uint8_t>(10, 255) == 0);
  CHECK(functors::divide<std::uint8_t>(255, 255) == 1);
}

TEST_CASE("equal operands of maximum and minimum share the gradient; a NaN is not lost") {
  Graph graph;
  const Node a = input(graph, "a", DType::float64, {3});
  const Node b = input(graph, "b", DType::float64, {3});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Node y = maximum(a, b);
  const auto results = Runner(graph, {y, minimum(a, b), gradients(sum(y), {a})[0]}, test_backend())(
      {Tensor::of<double>({3}, {1, 2, nan}), Tensor::of<double>({3}, {1, 3, 0})});
  CHECK(results[0].to_doubles()[1] == 3);
  CHECK(std::isnan(results[0].to_doubles()[2]));
  CHECK(std::isnan(results[1].to_doubles()[2]));
  CHECK(results[2].to_doubles()[0] == 0.5);
  CHECK(results[2].to_doubles()[1] == 0);
  CHECK(results[2].to_doubles()[2] == 0);
}

TEST_CASE("the cross-entropy of an infinite logit is 0 or infinite, and its gradient is finite") {
  const double infinity = std::numeric_limits<double>::infinity();
  Graph graph;
  const Node logits = input(graph, "logits", DType::float64, {6});
  const Node targets = input(graph, "targets", DType::float64, {6});
  const Node loss = sigmoid_cross_entropy(logits, targets);
  const auto results = Runner(graph, {loss, gradients(sum(loss), {logits})[0]}, test_backend())(
      {Tensor::of<double>({6}, {infinity, infinity, infinity, -infinity, -infinity, -infinity}),
       Tensor::of<double>({6}, {1, 0.5, 0, 1, 0.5, 0})});
  CHECK(results[0].to_doubles() == std::vector<double>{0, infinity, infinity, infinity, infinity, 0});
  CHECK(results[1].to_doubles() == std::vector<double>{0, 0.5, 1, -1, -0.5, 0});
}

TEST_CASE("pow has finite gradients at the edges") {
  Graph graph;
  const Node a = input(graph, "a", DType::float64, {3});
  const Node b = input(graph, "b", DType::float64, {3});
  const auto results = Runner(graph, gradients(sum(pow(a, b)), {a, b}), test_backend())(
      {Tensor::of<double>({3}, {0, 0, -2}), Tensor::of<double>({3}, {2, 0, 3})});
  CHECK(results[0].to_doubles() == std::vector<double>{0, 0, 12});
  CHECK(results[1].to_doubles()[0] == 0);
  CHECK(results[1].to_doubles()[1] == 0);
}

TEST_CASE("the gradient of pow by its exponent is 0 where the base is 0, even if the power is infinite") {
  Graph graph;
  const Node a = input(graph, "a", DType::float64, {2});
  const Node b = input(graph, "b", DType::float64, {2});
  const auto results = Runner(graph, gradients(sum(pow(a, b)), {b}), test_backend())(
      {Tensor::of<double>({2}, {0, 0}), Tensor::of<double>({2}, {-1, 2})});
  CHECK(results[0].to_doubles() == std::vector<double>{0, 0});
}

namespace {

struct At {
  double a;
  double b;
};

// Returns the derivative of a^b by each letter of `by` in turn: 'a' or 'b'.
double derivative_of_pow(const std::string& by, At at) {
  Graph graph;
  const Node a = input(graph, "a", DType::float64, {});
  const Node b = input(graph, "b", DType::float64, {});
  Node y = pow(a, b);
  for (const char which : by) y = gradients(y, {which == 'a' ? a : b})[0];
  return Runner(graph, {y}, test_backend())({Tensor::scalar(at.a), Tensor::scalar(at.b)})[0].to_doubles()[0];
}

}  // namespace

TEST_CASE("the second derivatives of pow are right where the exponent is 0, in both orders") {
  for (const At at :
       {At{2, 0}, At{3, 0}, At{1, 0}, At{2, 1}, At{0.5, -1}, At{2, 2}, At{2, 0.5}, At{0, 2}, At{0, 3}}) {
    CAPTURE(at.a);
    CAPTURE(at.b);
    const double logarithm = at.a > 0 ? std::log(at.a) : 0;
    const double mixed_one = std::pow(at.a, at.b - 1) * (1 + at.b * logarithm);
    CHECK(derivative_of_pow("ab", at) == doctest::Approx(mixed_one));
    CHECK(derivative_of_pow("ba", at) == doctest::Approx(mixed_one));
    CHECK(derivative_of_pow("aa", at) == doctest::Approx(at.b * (at.b - 1) * std::pow(at.a, at.b - 2)));
    CHECK(derivative_of_pow("bb", at) == doctest::Approx(std::pow(at.a, at.b) * logarithm * logarithm));
  }
}

TEST_CASE("the second derivatives of pow are infinite where they should be") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(derivative_of_pow("ab", {0, 1}) == -infinity);
  CHECK(derivative_of_pow("ba", {0, 1}) == -infinity);
  CHECK(derivative_of_pow("ab", {0, 0}) == infinity);
  CHECK(derivative_of_pow("aa", {0, 0}) == 0);
}

TEST_CASE("the third derivatives of pow") {
  for (const At at : {At{2, 0}, At{3, 1}, At{0.5, 2}, At{2, -1}}) {
    CAPTURE(at.a);
    CAPTURE(at.b);
    const double logarithm = std::log(at.a);
    const double aab = std::pow(at.a, at.b - 2) * (2 * at.b - 1 + at.b * (at.b - 1) * logarithm);
    const double abb = std::pow(at.a, at.b - 1) * logarithm * (2 + at.b * logarithm);
    for (const char* order : {"aab", "aba", "baa"})
      CHECK(derivative_of_pow(order, at) == doctest::Approx(aab));
    for (const char* order : {"abb", "bab", "bba"})
      CHECK(derivative_of_pow(order, at) == doctest::Approx(abb));
    CHECK(derivative_of_pow("bbb", at) == doctest::Approx(std::pow(at.a, at.b) * std::pow(logarithm, 3)));
  }
}

TEST_CASE("the derivatives of x to the power of x at 1") {
  Graph graph;
  const Node x = input(graph, "x", DType::float64, {});
  std::vector<Node> derivatives{pow(x, x)};
  for (int order = 1; order <= 3; ++order) derivatives.push_back(gradients(derivatives.back(), {x})[0]);
  const auto results = Runner(graph, derivatives, test_backend())({Tensor::scalar(1.0)});
  check_close(results[1], {1});
  check_close(results[2], {2});
  check_close(results[3], {3});
}

TEST_CASE("mul_no_nan is 0 where the first operand is, and its derivatives are those of a product") {
  Graph graph;
  const Node a = input(graph, "a", DType::float64, {4});
  const Node b = input(graph, "b", DType::float64, {4});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Node y = mul_no_nan(a, b);
  const std::vector<Node> first = gradients(sum(y), {a, b});
  const auto results = Runner(graph, {y, first[0], first[1]}, test_backend())(
      {Tensor::of<double>({4}, {0, 0, 0, 2}), Tensor::of<double>({4}, {nan, infinity, 3, 5})});
  CHECK(results[0].to_doubles() == std::vector<double>{0, 0, 0, 10});
  CHECK(std::isnan(results[1].to_doubles()[0]));
  CHECK(results[1].to_doubles()[2] == 3);
  CHECK(results[1].to_doubles()[3] == 5);
  CHECK(results[2].to_doubles() == std::vector<double>{0, 0, 0, 2});
}

TEST_CASE("a number takes the other operand's type") {
  Graph graph;
  const Node x = input(graph, "x", DType::bfloat16, {2});
  CHECK((2 * x).dtype() == DType::bfloat16);
  CHECK((x + 1).dtype() == DType::bfloat16);
  CHECK(where(gt(x, 0), x, 0).dtype() == DType::bfloat16);
}

}  // namespace plexaura::testing::binary_test
