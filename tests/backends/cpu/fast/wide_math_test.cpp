#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <numbers>
#include <vector>

#include "backends/cpu/fast/elementwise/elementwise_loops.h"
#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::wide_math_test {

namespace {

constexpr double bound = 0.51;  // units of the last place
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr long double pi = std::numbers::pi_v<long double>;

using Exact = long double (*)(long double);

long double exact_lgamma(long double x) {
  int sign = 0;
  return lgammal_r(x, &sign);
}

// By the recurrence up to 40, and then by the asymptotic series. Negative numbers are reflected.
long double exact_digamma(long double x) {
  if (x < 0) return exact_digamma(1 - x) - pi / std::tan(pi * (x - std::rint(x)));
  long double sum = 0;
  for (; x < 40; x += 1) sum -= 1 / x;
  const long double z = 1 / (x * x);
  const long double tail = z * (1.L / 12 - z * (1.L / 120 - z * (1.L / 252 - z * (1.L / 240 - z / 132))));
  return sum + std::log(x) - 0.5L / x - tail;
}

long double exact_trigamma(long double x) {
  if (x < 0) {
    const long double factor = pi / std::sin(pi * (x - std::rint(x)));
    return factor * factor - exact_trigamma(1 - x);
  }
  long double sum = 0;
  for (; x < 40; x += 1) sum += 1 / (x * x);
  const long double z = 1 / (x * x);
  return sum + 1 / x + z / 2 + z / x * (1.L / 6 - z * (1.L / 30 - z * (1.L / 42 - z / 30)));
}

// Returns the error in units of the last place. Below the normal numbers this is the smallest denormal.
double units(float found, long double exact) {
  const auto wide = static_cast<double>(exact);
  const double unit =
      std::max(std::ldexp(1.0, std::ilogb(wide) - 23), double{std::numeric_limits<float>::denorm_min()});
  return std::abs(static_cast<double>(static_cast<long double>(found) - exact)) / unit;
}

std::vector<float> values_of(const char* op, std::vector<float> x, double order = 0) {
  const fast::UnaryLoops* loops = fast::find_unary(op);
  REQUIRE(loops != nullptr);
  loops->loop(x.data(), x.data(), static_cast<std::int64_t>(x.size()), &order);
  return x;
}
float value_of(const char* op, float x, double order = 0) { return values_of(op, {x}, order)[0]; }

// Returns the largest error over random values of [low, high), or of [2^low, 2^high).
double largest_error(const char* op, Exact exact, double low, double high, double order = 0,
                     bool of_powers = false) {
  const Tensor drawn_values = drawn({DType::float32, {20000}}, op, {.low = low, .high = high});
  std::vector<float> x(drawn_values.as<float>().begin(), drawn_values.as<float>().end());
  if (of_powers)
    for (float& value : x) value = std::exp2(value);
  const std::vector<float> y = values_of(op, x, order);
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (const long double expected = exact(x[i]); std::isfinite(static_cast<float>(expected)))
      largest = std::max(largest, units(y[i], expected));
  return largest;
}

float power(float a, float b) {
  float y = 0;
  fast::find_binary("pow")->both(&a, &b, &y, 1, nullptr);
  return y;
}

}  // namespace

TEST_CASE("the loops of erfc, lgamma, digamma and trigamma round the exact values") {
  CHECK(largest_error("erfc", std::erfc, -6, 12) < bound);
  CHECK(largest_error("erfc", std::erfc, -1e-3, 1e-3) < bound);
  // The zeros of lgamma are 1, 2, -2.457..., -2.747..., and one of digamma is 1.4616.
  for (const auto& [low, high] :
       {std::pair{-40.0, 40.0}, {0.0, 3.0}, {0.999, 1.001}, {1.999, 2.001}, {-2.458, -2.456}, {-2.75, -2.74}})
    CHECK(largest_error("lgamma", exact_lgamma, low, high) < bound);
  for (const auto& [low, high] : {std::pair{-40.0, 40.0}, {-2.0, 3.0}, {1.4616, 1.4617}, {7.9, 8.1}})
    CHECK(largest_error("polygamma", exact_digamma, low, high) < bound);
  for (const auto& [low, high] : {std::pair{-40.0, 40.0}, {-2.0, 3.0}, {7.9, 8.1}})
    CHECK(largest_error("polygamma", exact_trigamma, low, high, 1) < bound);
  CHECK(largest_error("lgamma", exact_lgamma, -149, 127, 0, true) < bound);
  CHECK(largest_error("polygamma", exact_digamma, -126, 127, 0, true) < bound);
  CHECK(largest_error("polygamma", exact_trigamma, -63, 127, 1, true) < bound);
}

TEST_CASE("the loops of erfc, lgamma, digamma and trigamma know their limits") {
  CHECK(value_of("erfc", infinity) == 0);
  CHECK(value_of("erfc", -infinity) == 2);
  CHECK(value_of("erfc", 0) == 1);
  CHECK(value_of("erfc", 1e-40F) == 1);
  for (const float pole : {0.F, -0.F, -1.F, -4.F, -1e30F, infinity, -infinity})
    CHECK(value_of("lgamma", pole) == infinity);
  CHECK(value_of("lgamma", 1) == 0);
  CHECK(value_of("lgamma", 2) == 0);
  CHECK(value_of("lgamma", 3e38F) == infinity);
  CHECK(value_of("polygamma", 0) == -infinity);
  CHECK(value_of("polygamma", -0.F) == infinity);
  CHECK(value_of("polygamma", infinity) == infinity);
  CHECK(value_of("polygamma", infinity, 1) == 0);
  for (const float pole : {0.F, -0.F, -1.F, -1e30F}) CHECK(value_of("polygamma", pole, 1) == infinity);
  for (const float pole : {-1.F, -7.F, -1e30F, -infinity}) CHECK(std::isnan(value_of("polygamma", pole)));
  CHECK(std::isnan(value_of("polygamma", -infinity, 1)));
  for (const char* op : {"erfc", "lgamma", "polygamma"}) CHECK(std::isnan(value_of(op, NAN)));
  CHECK(std::isnan(value_of("polygamma", NAN, 1)));
}

TEST_CASE("the loop of pow rounds the exact values, and has the special values of the C library") {
  for (const double size : {1e-3, 1.0, 30.0, 120.0}) {
    const Tensor logarithms = drawn({DType::float32, {20000}}, "a", {.low = -size, .high = size});
    const Tensor ratios = drawn({DType::float32, {20000}}, "b", {.low = -1.2, .high = 1.2});
    double largest = 0;
    for (std::size_t i = 0; i < 20000; ++i) {
      const float a = std::exp2(logarithms.as<float>()[i]);
      const auto b = static_cast<float>(128 * ratios.as<float>()[i] / size);
      const long double exact = std::pow(static_cast<long double>(a), static_cast<long double>(b));
      if (const auto limit = static_cast<float>(exact); std::isinf(limit))
        CHECK(power(a, b) == limit);
      else
        largest = std::max(largest, units(power(a, b), exact));
    }
    CAPTURE(size);
    CHECK(largest < bound);
  }
  const std::vector<float> values{0,     1,     2,       3,        0.5F,  1.5F,     1e-40F,
                                  3e38F, 1e10F, 8388609, 16777216, 1e30F, infinity, 0.99999994F};
  std::vector<float> signed_values{NAN};
  for (const float value : values) signed_values.insert(signed_values.end(), {value, -value});
  for (const float a : signed_values)
    for (const float b : signed_values) {
      CAPTURE(a);
      CAPTURE(b);
      const float found = power(a, b);
      const float expected = std::pow(a, b);
      CHECK(std::isnan(found) == std::isnan(expected));
      if (std::isnan(expected)) continue;
      CHECK(std::signbit(found) == std::signbit(expected));
      CHECK((found == expected || std::abs(found - expected) <= 1.2e-7F * std::abs(expected)));
    }
}

}  // namespace plexaura::testing::wide_math_test
