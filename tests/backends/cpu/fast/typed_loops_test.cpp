#include "backends/cpu/fast/elementwise/typed_loops.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <span>

#include "core/loops/std_math.h"
#include "core/ops/activations.h"
#include "core/ops/binary.h"
#include "core/ops/functors.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::typed_loops_test {

namespace {

using Binary = Node (*)(Operand, Operand);

const std::vector<DType> numbers{DType::float64, DType::int64, DType::int32, DType::uint8};
const std::vector<DType> doubles{DType::float64};
const std::vector<DType> with_bool{DType::float64, DType::int64, DType::int32, DType::uint8, DType::boolean};

// Shapes of two operands, so that both are arrays, either one is repeated, and runs are longer than a block.
const std::vector<std::pair<Shape, Shape>> pairs{{{3, 700}, {3, 700}}, {{3, 700}, {}}, {{}, {1100}},
                                                 {{3, 5}, {3, 1}},     {{5}, {3, 5}},  {{2, 1, 7}, {4, 1}},
                                                 {{3, 1}, {3, 600}}};

// Returns the error in units of the last place. Below the normal numbers this is the smallest denormal.
double units(double found, long double exact) {
  const int exponent = std::max(std::ilogb(static_cast<double>(exact)) - 52, -1074);
  return static_cast<double>(std::abs(static_cast<long double>(found) - exact)) / std::ldexp(1.0, exponent);
}

}  // namespace

TEST_CASE("ops on doubles, integers and truth values have the bits of the portable kernels") {
  for (const auto& [a, b] : pairs) {
    CAPTURE(to_string(a));
    CAPTURE(to_string(b));
    const auto check = [&, &a = a, &b = b](Binary op, const std::vector<DType>& dtypes) {
      check_bits(
          [&](Graph& graph, DType dtype) {
            return op(graph.input("a", {dtype, a}), graph.input("b", {dtype, b}));
          },
          dtypes, {.low = -3, .high = 3, .labels = 5});
    };
    for (const Binary op : {add, sub, mul, div, maximum, minimum, lt, le, gt, ge}) check(op, numbers);
    for (const Binary op : {eq, ne}) check(op, with_bool);
  }
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 700}})
    for (Node (*op)(Operand) : {neg, abs, square, relu, sign, ceil, floor, round, trunc, cube, rsqrt,
                                softsign, hard_sigmoid, hard_swish, static_cast<Node (*)(Operand)>(sqrt)})
      check_bits(
          [&](Graph& graph, DType dtype) {
            return op(graph.input("x", {dtype, shape}));
          },
          doubles, {.low = -4, .high = 4});
}

TEST_CASE("vectorised functions of doubles are within their stated errors") {
  using Exact = long double (*)(long double);
  struct Function {
    const char* op;
    Exact exact;
    double bound;
    std::vector<std::pair<double, double>> ranges;
  };
  const std::vector<std::pair<double, double>> up_to_1{
      {-0.9999999, 0.9999999}, {-1e-3, 1e-3}, {-1e-20, 1e-20}};
  const std::vector<std::pair<double, double>> angles{{-0.8, 0.8}, {-4, 4},          {-1e-20, 1e-20},
                                                      {-1e3, 1e3}, {1.5707, 1.5709}, {3.14, 3.142},
                                                      {-1e6, 1e6}, {-1e9, 1e9}};
  const std::vector<Function> functions{
      {"exp", std::exp, 1.5, {{-745, 709.7}, {-700, 700}, {-20, 20}, {-1, 1}, {-1e-3, 1e-3}}},
      {"exp2", std::exp2, 1.5, {{-1074, 1023.9}, {-20, 20}, {-1, 1}, {-1e-3, 1e-3}}},
      {"expm1",
       std::expm1,
       2.5,
       {{-700, 709.78}, {708.9, 709.78}, {-40, 40}, {-2, 2}, {-0.4, 0.4}, {-1e-3, 1e-3}, {-1e-20, 1e-20}}},
      {"log", std::log, 2, {{1e-310, 3e-308}, {1e-300, 4}, {0.7, 1.4}, {0.99, 1.01}, {1, 1e300}}},
      {"log2", std::log2, 3.5, {{1e-310, 3e-308}, {1e-300, 4}, {0.7, 1.4}, {0.99, 1.01}, {1, 1e300}}},
      {"log10", std::log10, 3.5, {{1e-310, 3e-308}, {1e-300, 4}, {0.7, 1.4}, {0.99, 1.01}, {1, 1e300}}},
      {"log1p", std::log1p, 4, {{-0.999, 0.999}, {-0.3, 0.3}, {-1e-3, 1e-3}, {-1e-20, 1e-20}, {0, 1e10}}},
      {"tanh", std::tanh, 3, {{-25, 25}, {-1, 1}, {-0.3, 0.3}, {-1e-3, 1e-3}, {-1e-20, 1e-20}}},
      {"sinh",
       std::sinh,
       4,
       {{-710.4, 710.4}, {708.5, 710.47}, {-20, 20}, {-1, 1}, {-1e-3, 1e-3}, {-1e-20, 1e-20}}},
      {"cosh", std::cosh, 2.5, {{-710.4, 710.4}, {708.5, 710.47}, {-20, 20}, {-1, 1}}},
      {"asinh",
       std::asinh,
       6,
       {{-1e300, 1e300}, {-1e9, 1e9}, {-20, 20}, {-1, 1}, {-1e-3, 1e-3}, {-1e-20, 1e-20}}},
      {"atanh", std::atanh, 5, up_to_1},
      {"asin", std::asin, 4, up_to_1},
      {"acos", std::acos, 4, up_to_1},
      {"atan",
       std::atan,
       3,
       {{-1e300, 1e300}, {-10, 10}, {-1, 1}, {0.41, 0.42}, {-1e-3, 1e-3}, {-1e-20, 1e-20}}},
      {"sin", std::sin, 2, angles},
      {"cos", std::cos, 2, angles},
      {"tan", std::tan, 4, angles},
      {"sigmoid", [](long double x) { return 1 / (1 + std::exp(-x)); }, 4, {{-700, 700}, {-1, 1}}},
      {"softplus", [](long double x) { return std::log1p(std::exp(x)); }, 5, {{-700, 700}, {-1, 1}}}};
  constexpr std::int64_t count = 100000;
  std::vector<double> x(count);
  std::vector<double> y(count);
  for (const Function& function : functions)
    for (const auto& [low, high] : function.ranges) {
      CAPTURE(function.op);
      CAPTURE(low);
      for (std::int64_t i = 0; i < count; ++i)
        x[static_cast<std::size_t>(i)] = low + (high - low) * (static_cast<double>(i) + 0.37) / count;
      const std::byte* operand = reinterpret_cast<const std::byte*>(x.data());
      fast::find_typed(function.op, DType::float64)
          ->loop(&operand, reinterpret_cast<std::byte*>(y.data()), count, nullptr);
      double largest = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        largest = std::max(largest, units(y[i], function.exact(static_cast<long double>(x[i]))));
      CHECK(largest < function.bound);
    }
}

TEST_CASE("hypot, atan2 and pow of doubles are within their stated errors, and have the C library's limits") {
  struct Function {
    const char* op;
    long double (*exact)(long double, long double);
    double bound;
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> special{NAN};
  for (const double size : {0., 5e-324, 1e-323, 3.5e-323, 1e-310, 1e-300, 1e-145, 0.5, 1., 2., 3., 1e10,
                            1e151, 1e299, 1.7e308, infinity})
    special.insert(special.end(), {size, -size});
  for (const Function& function :
       {Function{"hypot", std::hypot, 2}, {"atan2", std::atan2, 3}, {"pow", std::pow, 2}}) {
    CAPTURE(function.op);
    const auto value_of = [&](double a, double b) {
      double y = 0;
      const std::array operands{reinterpret_cast<const std::byte*>(&a),
                                reinterpret_cast<const std::byte*>(&b)};
      fast::find_typed(function.op, DType::float64)
          ->loop(operands.data(), reinterpret_cast<std::byte*>(&y), 1, nullptr);
      return y;
    };
    const auto check = [&](double a, double b) {
      CAPTURE(a);
      CAPTURE(b);
      const long double exact = function.exact(static_cast<long double>(a), static_cast<long double>(b));
      const double found = value_of(a, b);
      const auto wanted = static_cast<double>(exact);
      CHECK(std::isnan(found) == std::isnan(wanted));
      if (std::isnan(wanted)) return;
      CHECK(std::signbit(found) == std::signbit(wanted));
      CHECK((found == wanted || units(found, exact) < function.bound));
    };
    for (const double a : special)
      for (const double b : special) check(a, b);
    check(0x1.69df8f8880cc7p+0, -0x1.fbc74fce142c8p+10);  // the largest errors of pow that were found
    check(0x1.69f0d2636147fp+0, 0x1.fec96d5697319p+10);
    const Tensor drawn_values = drawn({DType::float64, {20000}}, "values", {.low = -2, .high = 2});
    const std::span<const double> values = drawn_values.as<double>();
    for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
      check(values[i], values[i + 1]);
      check(1.06 + 0.18 * values[i], 1000 * values[i + 1]);
    }
  }
}

TEST_CASE("floor_div and mod of doubles are exact for quotients of all sizes") {
  constexpr std::int64_t count = 192;  // several blocks, which have the same sizes of quotients
  const Tensor drawn_a = drawn({DType::float64, {count}}, "a", {.low = -2, .high = 2});
  const Tensor drawn_b = drawn({DType::float64, {count}}, "b", {.low = -2, .high = 2});
  struct Scales {
    int of_a, of_b;
  };
  for (const Scales scales : {Scales{0, 0},
                              {5, 0},
                              {25, 0},
                              {48, 0},
                              {49, 0},
                              {53, 0},
                              {-40, 0},
                              {-1050, -1050},
                              {-1022, -1060},
                              {1000, 1000},
                              {1020, 990},
                              {-1000, 1000},
                              {1000, -1000}}) {
    CAPTURE(scales.of_a);
    CAPTURE(scales.of_b);
    std::vector<double> a;
    std::vector<double> b;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      b.push_back(std::ldexp(drawn_b.as<double>()[i], scales.of_b));
      const double any = std::ldexp(drawn_a.as<double>()[i], scales.of_a);
      // Every third dividend is a rounded multiple of the divisor, every seventh a zero.
      const double multiple = i % 3 == 0 ? std::round(any / b.back()) * b.back() : any;
      a.push_back(i % 7 == 0 ? std::copysign(0., any) : multiple);
    }
    const std::array operands{reinterpret_cast<const std::byte*>(a.data()),
                              reinterpret_cast<const std::byte*>(b.data())};
    std::vector<double> whole(a.size());
    std::vector<double> rest(a.size());
    fast::find_typed("floor_div", DType::float64)
        ->loop(operands.data(), reinterpret_cast<std::byte*>(whole.data()), count, nullptr);
    fast::find_typed("mod", DType::float64)
        ->loop(operands.data(), reinterpret_cast<std::byte*>(rest.data()), count, nullptr);
    for (std::size_t i = 0; i < a.size(); ++i) {
      CAPTURE(a[i]);
      CAPTURE(b[i]);
      CHECK(std::bit_cast<std::uint64_t>(rest[i]) ==
            std::bit_cast<std::uint64_t>(functors::modulo<double, StdMath>(a[i], b[i])));
      CHECK(std::bit_cast<std::uint64_t>(whole[i]) ==
            std::bit_cast<std::uint64_t>(functors::floor_divide<double, StdMath>(a[i], b[i])));
    }
  }
}

TEST_CASE("erfinv, digamma and trigamma of doubles are within their stated errors") {
  const auto values_of = [](const char* op, double order, const std::vector<double>& x) {
    std::vector<double> y(x.size());
    const std::byte* operand = reinterpret_cast<const std::byte*>(x.data());
    fast::find_typed(op, DType::float64)
        ->loop(&operand, reinterpret_cast<std::byte*>(y.data()), std::ssize(x), &order);
    return y;
  };
  const auto between = [](double low, double high) {
    std::vector<double> x;
    for (int i = 0; i < 5000; ++i) x.push_back(low + (high - low) * (i + 0.37) / 5000);
    return x;
  };
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{{-0.999, 0.999},
                                                                        {0.84, 0.86},
                                                                        {0.98, 0.999},
                                                                        {-1e-20, 1e-20},
                                                                        {1 - 1e-6, 1},
                                                                        {1 - 1e-9, 1},
                                                                        {1 - 1e-12, 1 - 1e-14}}) {
    CAPTURE(low);
    const std::vector<double> y = between(low, high);
    const std::vector<double> found = values_of("erfinv", 0, y);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const long double wanted = y[i];
      long double x = found[i];  // two steps of Newton's method
      for (int step = 0; step < 2; ++step) {
        const long double error = wanted > 0.5L ? (1 - wanted) - std::erfc(x) : std::erf(x) - wanted;
        x -= error * 0.886226925452758013649L * std::exp(x * x);
      }
      CHECK(units(found[i], x) < 3);
    }
  }
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{{1e-300, 1e-3},
                                                                        {0.01, 3},
                                                                        {1.4, 1.5},
                                                                        {2, 12},
                                                                        {9.9, 1e3},
                                                                        {-0.99, -0.01},
                                                                        {-20, -10},
                                                                        {-5.001, -4.999}})
    for (const double order : {0., 1.}) {
      CAPTURE(low);
      CAPTURE(order);
      const std::vector<double> x = between(low, high);
      const std::vector<double> found = values_of("polygamma", order, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double wanted = functors::Polygamma<double, StdMath>(&order)(x[i]);
        CHECK(std::abs(found[i] - wanted) < 2e-14 * std::max(1., std::abs(wanted)));
      }
    }
  // Up to 2^52 in size there are halves, at which the reflection adds 0 to digamma and pi^2 to trigamma.
  for (const double whole : {0x1p50, 0x1p51 - 1, 0x1p51, 0x1p51 + 1, 0x1.8p51, 0x1p52 - 1}) {
    CAPTURE(whole);
    CHECK(values_of("polygamma", 0, {-whole - 0.5})[0] == doctest::Approx(std::log(whole)).epsilon(1e-14));
    CHECK(values_of("polygamma", 1, {-whole - 0.5})[0] == doctest::Approx(9.8696044010893586).epsilon(1e-14));
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double whole : {-0x1p51, -0x1p51 - 1, -0x1p52, -0x1p52 - 1, -0x1p53, -0x1.8p54, -1e300}) {
    CAPTURE(whole);
    CHECK(std::isnan(values_of("polygamma", 0, {whole})[0]));
    CHECK(values_of("polygamma", 1, {whole})[0] == infinity);
  }
  CHECK(values_of("erfinv", 0, {1, -1, 5e-324}) == std::vector<double>{infinity, -infinity, 5e-324});
  CHECK(values_of("polygamma", 0, {0, -0.0, infinity, -5e-324}) ==
        std::vector<double>{-infinity, infinity, infinity, infinity});
  CHECK(values_of("polygamma", 1, {0, -2, infinity}) == std::vector<double>{infinity, infinity, 0});
  CHECK(std::signbit(values_of("erfinv", 0, {-0.0})[0]));
  for (const double y : values_of("erfinv", 0, {1.5, -infinity, NAN})) CHECK(std::isnan(y));
  for (const double y : values_of("polygamma", 0, {-1, -3, NAN, -infinity})) CHECK(std::isnan(y));
  CHECK(std::isnan(values_of("polygamma", 1, {NAN})[0]));
  CHECK(values_of("polygamma", 2, {1.5})[0] == doctest::Approx(-0.8287966442343200));
}

TEST_CASE("hypot of doubles is exact for right triangles whose sides are whole numbers") {
  const fast::TypedLoops* const hypot = fast::find_typed("hypot", DType::float64);
  for (double m = 2; m < 60; ++m)
    for (double k = 1; k < m; ++k) {
      const std::array sides{m * m - k * k, 2 * m * k};
      const std::array operands{reinterpret_cast<const std::byte*>(&sides[0]),
                                reinterpret_cast<const std::byte*>(&sides[1])};
      double length = 0;
      hypot->loop(operands.data(), reinterpret_cast<std::byte*>(&length), 1, nullptr);
      CHECK(length == m * m + k * k);
    }
}

TEST_CASE("powers of doubles do not depend on how the elements are divided among threads") {
  constexpr std::int64_t count = 20000;
  const std::vector<double> bases(count, 0.3);
  std::vector<double> exponents(count, 3.0);
  std::fill(exponents.begin() + 10000, exponents.end(), 2.5);
  for (const char* const op : {"pow", "pow_log"}) {
    CAPTURE(op);
    const double order = 0;
    const auto run = [&](std::vector<double>& y, std::int64_t begin, std::int64_t end) {
      const std::array operands{reinterpret_cast<const std::byte*>(bases.data() + begin),
                                reinterpret_cast<const std::byte*>(exponents.data() + begin)};
      fast::find_typed(op, DType::float64)
          ->loop(operands.data(), reinterpret_cast<std::byte*>(y.data() + begin), end - begin, &order);
    };
    std::vector<double> whole(count);
    std::vector<double> divided(count);
    run(whole, 0, count);
    run(divided, 0, 9984);
    run(divided, 9984, count);
    CHECK(whole == divided);
  }
}

TEST_CASE("vectorised functions of doubles know their limits") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto value_of = [](const char* op, double x) {
    double y = 0;
    const std::byte* operand = reinterpret_cast<const std::byte*>(&x);
    fast::find_typed(op, DType::float64)->loop(&operand, reinterpret_cast<std::byte*>(&y), 1, nullptr);
    return y;
  };
  struct Limit {
    const char* op;
    double x;
    double y;
  };
  for (const Limit& limit : {Limit{"exp", infinity, infinity},
                             {"exp", -infinity, 0},
                             {"exp", 0, 1},
                             {"exp", 709.9, infinity},
                             {"exp", -745, 5e-324},
                             {"exp", -746, 0},
                             {"expm1", infinity, infinity},
                             {"expm1", 709.79, infinity},
                             {"expm1", -infinity, -1},
                             {"expm1", 5e-324, 5e-324},
                             {"log", 0, -infinity},
                             {"log", -0.0, -infinity},
                             {"log", infinity, infinity},
                             {"log", 1, 0},
                             {"log1p", -1, -infinity},
                             {"log1p", infinity, infinity},
                             {"log1p", -5e-324, -5e-324},
                             {"exp2", -1074, 5e-324},
                             {"exp2", -1076, 0},
                             {"exp2", 1024, infinity},
                             {"exp2", 10, 1024},
                             {"log2", 5e-324, -1074},
                             {"log2", 0, -infinity},
                             {"log2", infinity, infinity},
                             {"log10", 0, -infinity},
                             {"log10", 1, 0},
                             {"sinh", 5e-324, 5e-324},
                             {"sinh", 710.5, infinity},
                             {"sinh", -infinity, -infinity},
                             {"cosh", 0, 1},
                             {"cosh", 710.5, infinity},
                             {"cosh", -infinity, infinity},
                             {"asinh", 5e-324, 5e-324},
                             {"asinh", -infinity, -infinity},
                             {"atanh", 1, infinity},
                             {"atanh", -5e-324, -5e-324},
                             {"asin", 5e-324, 5e-324},
                             {"acos", 1, 0},
                             {"acos", -1, std::acos(-1.)},
                             {"atan", -infinity, std::atan(-infinity)},
                             {"sin", 5e-324, 5e-324},
                             {"cos", 0, 1},
                             {"tan", -5e-324, -5e-324},
                             {"tanh", infinity, 1},
                             {"tanh", -100, -1},
                             {"tanh", 5e-324, 5e-324},
                             {"sigmoid", -infinity, 0},
                             {"sigmoid", infinity, 1},
                             {"softplus", infinity, infinity},
                             {"softplus", -infinity, 0}}) {
    CAPTURE(limit.op);
    CAPTURE(limit.x);
    CHECK(value_of(limit.op, limit.x) == limit.y);
  }
  for (const char* op : {"expm1", "log1p", "tanh", "sinh", "asinh", "atanh", "asin", "atan", "sin", "tan"})
    CHECK(std::signbit(value_of(op, -0.0)));
  for (const char* op : {"exp",  "expm1", "log",   "log1p", "tanh",  "sigmoid", "softplus", "silu",
                         "mish", "selu",  "exp2",  "log2",  "log10", "sinh",    "cosh",     "asinh",
                         "sin",  "cos",   "atanh", "asin",  "acos",  "atan",    "tan"})
    CHECK(std::isnan(value_of(op, NAN)));
  for (const char* op : {"sin", "cos", "tan"}) CHECK(std::isnan(value_of(op, infinity)));
  for (const char* op : {"asin", "acos", "atanh"})
    for (const double outside : {-1.5, 1.5, infinity}) CHECK(std::isnan(value_of(op, outside)));
  for (const double outside : {-1.5, -infinity}) {
    CHECK(std::isnan(value_of("log", outside)));
    CHECK(std::isnan(value_of("log1p", outside)));
  }
}

TEST_CASE("the derivatives of powers of doubles have the digits of the portable kernels") {
  const Agreement result = agreement(
      [](Graph& graph, DType dtype) -> std::vector<Node> {
        const Node a = graph.input("a", {dtype, {1100}});
        const Node b = graph.input("b", {dtype, {1100}});
        std::vector<Node> found;
        for (const int order : {0, 1, 2})
          for (const Node& power : {pow_log(a, b, order), pow_log(a, 2, order), pow_log(a, 0, order)})
            found.push_back(power);
        return found;
      },
      {.low = 0.1, .high = 2, .dtype = DType::float64});
  CAPTURE(result.program);
  CHECK_FALSE(result.uses("portable"));
  CHECK(result.worst() < bound_of_doubles);
}

TEST_CASE("special doubles have the results of the portable kernels") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> special{0,      -0.0,     1,         -1,  5e-324, -5e-324, 1e308,
                                    -1e308, infinity, -infinity, NAN, -3,     3};
  const auto count = static_cast<std::int64_t>(special.size());
  std::vector<double> firsts;
  std::vector<double> seconds;
  for (const double a : special)
    for (const double b : special) {
      firsts.push_back(a);
      seconds.push_back(b);
    }
  const auto check = [&](const std::function<Node(Operand, Operand)>& op) {
    check_bits(
        [&](Graph& graph, DType) {
          const Tensor a = Tensor::of<double>({count, count}, firsts);
          const Tensor b = Tensor::of<double>({count, count}, seconds);
          return op(graph.constant(a), graph.constant(b));
        },
        doubles);
  };
  for (const Binary op : {add, sub, mul, div, maximum, minimum, floor_div, mod, eq, ne, lt, le, gt, ge})
    check(op);
  check([](Operand a, Operand b) { return mul_no_nan(a, b); });
  for (Node (*op)(Operand) :
       {neg, abs, relu, sign, round, hard_sigmoid, static_cast<Node (*)(Operand)>(sqrt)})
    check([op](Operand a, Operand) { return op(a); });
  check([](Operand a, Operand) { return clip(a, -1, 2); });
  check([](Operand a, Operand) { return leaky_relu(a, 0.25); });
}

TEST_CASE("where selects from arrays and single values of any dtype, and changes no bit") {
  for (const Shape& condition : {Shape{3, 700}, Shape{3, 1}, Shape{}})
    for (const auto& [a, b] : pairs) {
      if (broadcast(a, b) != Shape{3, 700} && broadcast(a, b) != Shape{3, 600}) continue;
      if (condition.rank() == 2 && condition[1] == 700 && broadcast(a, b) != condition) continue;
      check_bits(
          [&, &a = a, &b = b](Graph& graph, DType dtype) {
            return where(graph.input("condition", {DType::boolean, condition}), graph.input("a", {dtype, a}),
                         graph.input("b", {dtype, b}));
          },
          every_dtype, {.labels = 200});
    }
  // The bits of a NaN are those of its operand.
  constexpr std::array<std::uint32_t, 2> nans{0x7fc12345, 0xffc54321};
  constexpr std::array<std::uint32_t, 2> others{1, 2};
  constexpr std::array<bool, 2> condition{true, false};
  std::array<std::uint32_t, 2> y{};
  const std::array<const std::byte*, 3> operands{reinterpret_cast<const std::byte*>(condition.data()),
                                                 reinterpret_cast<const std::byte*>(nans.data()),
                                                 reinterpret_cast<const std::byte*>(others.data())};
  fast::where_loop(4)(operands.data(), reinterpret_cast<std::byte*>(y.data()), 2, nullptr);
  CHECK(y == std::array<std::uint32_t, 2>{0x7fc12345, 2});
}

TEST_CASE("a value of any dtype is broadcast") {
  for (const Shape& from : {Shape{}, Shape{1, 5}, Shape{3, 1}, Shape{2, 1, 1}})
    check_bits(
        [&](Graph& graph, DType dtype) {
          return broadcast_to(graph.input("x", {dtype, from}), Shape{2, 3, 5});
        },
        every_dtype, {.labels = 200});
}

}  // namespace plexaura::testing::typed_loops_test
