#include "core/ops/logic.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/function_cases.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::logic_test {

namespace {

using reference::elementwise;
using Function = Node (*)(Operand, Operand);

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

OpCase of_truths(const std::string& name, const std::string& op, Function build,
                 double (*expected)(double, double)) {
  return {name,
          op,
          [=](Graph&, auto x) { return std::vector{build(x[0], x[1])}; },
          {{{4, 1}, these({0, 2, nan, -1}), DType::float64}, {{2}, whole(0, 2), DType::boolean}},
          elementwise(expected),
          false,
          false,
          {DType::float64}};
}

OpCase of_bits(const std::string& op, Function build, double (*expected)(double, double), DType dtype,
               Values of_b) {
  return {op + " of " + std::string(name_of(dtype)),
          op,
          [=](Graph&, auto x) { return std::vector{build(x[0], x[1])}; },
          {{{3, 1}, these({5, 100, 77}), dtype}, {{4}, std::move(of_b), dtype}},
          elementwise(expected),
          false,
          false,
          {DType::float64}};
}

// Applies `of` to each bit of two non-negative numbers of up to 16 bits.
double by_bits(double a, double b, bool (*of)(bool, bool)) {
  double result = 0;
  for (int bit = 15; bit >= 0; --bit) {
    const auto is_set = [=](double x) { return std::fmod(std::floor(x / std::pow(2, bit)), 2) == 1; };
    result = 2 * result + (of(is_set(a), is_set(b)) ? 1 : 0);
  }
  return result;
}

double both(double a, double b) {
  return by_bits(a, b, [](bool x, bool y) { return x && y; });
}
double any_of(double a, double b) {
  return by_bits(a, b, [](bool x, bool y) { return x || y; });
}
double one_of(double a, double b) {
  return by_bits(a, b, [](bool x, bool y) { return x != y; });
}
double doubled(double a, double times) { return a * std::pow(2, times); }
double doubled_byte(double a, double times) { return std::fmod(doubled(a, times), 256); }
double halved(double a, double times) { return std::floor(a / std::pow(2, times)); }

OpCase question(const std::string& name, const std::string& op, Node (*build)(Operand),
                double (*expected)(double)) {
  return {name,
          op,
          [=](Graph&, auto x) { return std::vector{build(x[0])}; },
          {{{5}, these({0, nan, infinity, -infinity, -2})}},
          elementwise(expected),
          false};
}

const Values places = these({0, 1, 3, 2});
const Values bits = these({1, 120, 36, 0});

OpCase of_choice(DType dtype, Values of_b) {
  return {
      "where of " + std::string(name_of(dtype)),
      "where",
      [](Graph&, auto x) { return std::vector{where(x[0], x[1], x[2])}; },
      {{{3, 1}, these({0, 1, 1}), DType::boolean}, {{4}, whole(0, 2), dtype}, {{4}, std::move(of_b), dtype}},
      elementwise([](double condition, double a, double b) { return condition != 0 ? a : b; }),
      false,
      false,
      {DType::float64}};
}

const Cases cases({
    of_choice(DType::boolean, these({1, 1, 0, 0})),
    of_truths("logical_and", "where", logical_and,
              [](double a, double b) { return a != 0 && b != 0 ? 1. : 0.; }),
    of_truths("logical_or", "where", logical_or,
              [](double a, double b) { return a != 0 || b != 0 ? 1. : 0.; }),
    of_truths("logical_xor", "ne", logical_xor,
              [](double a, double b) { return (a != 0) != (b != 0) ? 1. : 0.; }),
    question("logical_not", "eq", logical_not, [](double x) { return x == 0 ? 1. : 0.; }),
    question("is_nan", "ne", is_nan, [](double x) { return std::isnan(x) ? 1. : 0.; }),
    question("is_finite", "lt", is_finite, [](double x) { return std::isfinite(x) ? 1. : 0.; }),
    of_bits("bitwise_and", bitwise_and, both, DType::int32, bits),
    of_bits("bitwise_and", bitwise_and, both, DType::uint8, bits),
    of_bits("bitwise_and", bitwise_and, both, DType::int64, bits),
    of_bits("bitwise_or", bitwise_or, any_of, DType::int64, bits),
    of_bits("bitwise_or", bitwise_or, any_of, DType::int32, bits),
    of_bits("bitwise_or", bitwise_or, any_of, DType::uint8, bits),
    of_bits("bitwise_xor", bitwise_xor, one_of, DType::int64, bits),
    of_bits("bitwise_xor", bitwise_xor, one_of, DType::int32, bits),
    of_bits("bitwise_xor", bitwise_xor, one_of, DType::uint8, bits),
    of_bits("left_shift", left_shift, doubled, DType::int32, places),
    of_bits("left_shift", left_shift, doubled, DType::int64, places),
    of_bits("left_shift", left_shift, doubled_byte, DType::uint8, places),
    of_bits("right_shift", right_shift, halved, DType::int64, places),
    of_bits("right_shift", right_shift, halved, DType::int32, places),
    of_bits("right_shift", right_shift, halved, DType::uint8, places),
});

template <DType dtype>
WrongCase of_other(const std::string& op, Function build) {
  return {op + " of " + std::string(name_of(dtype)),
          op,
          [=](Graph& graph) {
            build(graph.input("a", {dtype, {2}}), graph.input("b", {dtype, {2}}));
          },
          {std::string(name_of(dtype)) + "[2]", "defined for integers", "cast()"}};
}

WrongCase of_two_dtypes(const std::string& op, Function build) {
  return {op + " of two dtypes",
          op,
          [=](Graph& graph) {
            build(graph.input("a", {DType::int32, {2}}), graph.input("b", {DType::int64, {2}}));
          },
          {op + "(int32[2], int64[2])", "one dtype", "cast()"}};
}

WrongCase of_integers(const std::string& op, Node (*build)(Operand)) {
  return {op + " of integers",
          op,
          [=](Graph& graph) {
            build(graph.input("x", {DType::int64, {2}}));
          },
          {"int64[2]", "floating", "cast()"}};
}

const WrongCases wrong({
    of_other<DType::float32>("bitwise_and", bitwise_and),
    of_other<DType::boolean>("bitwise_and", bitwise_and),
    of_other<DType::float32>("bitwise_or", bitwise_or),
    of_other<DType::boolean>("bitwise_xor", bitwise_xor),
    of_other<DType::float64>("left_shift", left_shift),
    of_other<DType::boolean>("right_shift", right_shift),
    of_integers("is_nan", is_nan),
    of_integers("is_finite", is_finite),
    of_two_dtypes("bitwise_and", bitwise_and),
    of_two_dtypes("bitwise_or", bitwise_or),
    of_two_dtypes("bitwise_xor", bitwise_xor),
});

}  // namespace

TEST_CASE("truth values and bits") { check_all(cases); }
TEST_CASE("truth values and bits: what is refused") { check_all(wrong); }

TEST_CASE("bits of negative numbers, and shifts by more places than there are") {
  Graph graph;
  const Node a = graph.input("a", {DType::int32, {5}});
  const Node b = graph.input("b", {DType::int32, {5}});
  const Node byte = graph.input("byte", {DType::uint8, {2}});
  const auto results =
      Runner(graph, {left_shift(a, b), right_shift(a, b), bitwise_not(a), bitwise_not(byte)}, test_backend())(
          {Tensor::of<std::int32_t>({5}, {-8, 8, -8, 1, -1}),
           Tensor::of<std::int32_t>({5}, {100, -1, 1, 31, 32}), Tensor::of<std::uint8_t>({2}, {0, 200})});
  CHECK(results[0].to_doubles() ==
        std::vector<double>{0, 0, -16, std::numeric_limits<std::int32_t>::min(), 0});
  CHECK(results[1].to_doubles() == std::vector<double>{-1, 0, -4, 0, -1});
  CHECK(results[2].to_doubles() == std::vector<double>{7, -9, 7, -2, 0});
  CHECK(results[3].to_doubles() == std::vector<double>{255, 55});
}

}  // namespace plexaura::testing::logic_test
