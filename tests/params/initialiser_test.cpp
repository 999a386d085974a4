#include "core/params/initialiser.h"

#include <cmath>
#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/params/parameter_store.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::initialiser_test {

namespace {

struct Statistics {
  double mean = 0;
  double deviation = 0;
  double least = 0;
  double most = 0;
};

Statistics of(const Initialiser& initialiser, const Shape& shape, DType dtype = DType::float32) {
  const auto values = initialiser.make({dtype, shape}, "layer.weight", 1).to_doubles();
  Statistics result{0, 0, values[0], values[0]};
  for (const double value : values) {
    result.mean += value / static_cast<double>(values.size());
    result.least = std::min(result.least, value);
    result.most = std::max(result.most, value);
  }
  for (const double value : values) result.deviation += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(result.deviation / static_cast<double>(values.size()));
  return result;
}

const Shape filters{64, 32, 5, 5};  // fan in 800, fan out 1600

ParameterSpec spec(std::string name, std::int64_t count) {
  ParameterSpec result;
  result.name = std::move(name);
  result.type = {DType::float32, Shape{count}};
  result.initialiser = Initialiser::normal(1);
  return result;
}

void check_deviation(const Initialiser& initialiser, double expected, bool uniform) {
  const Statistics found = of(initialiser, filters);
  CHECK(std::abs(found.mean) < 4 * expected / std::sqrt(51200.0));
  CHECK(found.deviation == doctest::Approx(expected).epsilon(0.02));
  const double limit = std::sqrt(3.0) * expected;
  if (uniform) {
    CHECK(found.most < limit);
    CHECK(found.least >= -limit);
    CHECK(found.most > 0.99 * limit);
  } else {
    CHECK(found.most > 3 * expected);
    CHECK(found.most < 6 * expected);
  }
}

}  // namespace

TEST_CASE("fans give the deviations of their papers") {
  check_deviation(Initialiser::glorot_uniform(), std::sqrt(2.0 / 2400), true);
  check_deviation(Initialiser::glorot_normal(), std::sqrt(2.0 / 2400), false);
  check_deviation(Initialiser::he_uniform(), std::sqrt(2.0 / 800), true);
  check_deviation(Initialiser::he_normal(), std::sqrt(2.0 / 800), false);
  check_deviation(Initialiser::he_normal_fan_out(), std::sqrt(2.0 / 1600), false);
  check_deviation(Initialiser::lecun_uniform(), 1 / std::sqrt(3.0 * 800), true);
  check_deviation(Initialiser::normal(0.25), 0.25, false);
  check_deviation(Initialiser::uniform(0.5), 0.5 / std::sqrt(3.0), true);
}

TEST_CASE("constants are constant") {
  CHECK(Initialiser::zeros().make({DType::float32, {3}}, "a", 1).to_doubles() ==
        std::vector<double>{0, 0, 0});
  CHECK(Initialiser::ones().make({DType::float64, {2}}, "a", 1).to_doubles() == std::vector<double>{1, 1});
  CHECK(Initialiser::constant(0.5).make({DType::bfloat16, {2}}, "a", 1).to_doubles() ==
        std::vector<double>{0.5, 0.5});
}

TEST_CASE("the elements of one index of the first axis can start as zeros") {
  Initialiser ones = Initialiser::ones();
  ones.zero_row = 1;
  CHECK(ones.make({DType::float32, {3, 2}}, "a", 1).to_doubles() == std::vector<double>{1, 1, 0, 0, 1, 1});
  CHECK(user_error([&] {
          ones.make({DType::float32, {1, 2}}, "a", 1);
        }) ==
        "the initialiser of the parameter 'a' sets row 1 to 0 and the parameter is float32[1,2]; rows count "
        "from 0");
}

TEST_CASE("values are a function of seed, name and index alone") {
  const auto make = [](const char* name, std::uint64_t seed) {
    return Initialiser::normal(1).make({DType::float32, {100}}, name, seed);
  };
  CHECK(make("a", 1) == make("a", 1));
  CHECK(!(make("a", 1) == make("b", 1)));
  CHECK(!(make("a", 1) == make("a", 2)));
  // The values do not depend on the order of parameters, nor on other parameters.
  std::vector<ParameterSpec> one;
  one.push_back(spec("a", 100));
  std::vector<ParameterSpec> two;
  two.push_back(spec("b", 7));
  two.push_back(spec("a", 100));
  const ParameterStore both(two, 5);
  const ParameterStore alone(one, 5);
  CHECK(both.read("a") == alone.read("a"));
}

TEST_CASE("dtypes round the same numbers") {
  const auto values = [](DType dtype) {
    return Initialiser::normal(1).make({dtype, {100}}, "a", 1).to_doubles();
  };
  const auto exact = values(DType::float64);
  const auto rounded = values(DType::float32);
  for (std::size_t i = 0; i < exact.size(); ++i) CHECK(rounded[i] == doctest::Approx(exact[i]).epsilon(1e-6));
}

TEST_CASE("numbers that start no parameter are refused") {
  const double nan = std::nan("");
  for (const Initialiser& wrong : {Initialiser::constant(nan), Initialiser::normal(-1),
                                   Initialiser::uniform(-1), Initialiser::normal(nan)})
    CHECK(user_error([&] {
            wrong.make({DType::float32, {3}}, "a", 1);
          }).find("the initialiser of the parameter 'a' has the number") != std::string::npos);
  CHECK(Initialiser::constant(-1).make({DType::float32, {1}}, "a", 1) == Tensor::of<float>({1}, {-1}));
  CHECK(Initialiser::normal(0).make({DType::float32, {1}}, "a", 1) == Tensor::of<float>({1}, {0}));
}

TEST_CASE("whole numbers have no initialiser") {
  CHECK(!user_error([] { Initialiser::zeros().make({DType::int64, {3}}, "a", 1); }).empty());
}

TEST_CASE("a parameter starts with given values, converted to its dtype") {
  const Initialiser given = Initialiser::given([] { return Tensor::of({2}, std::vector{0.5, -3.0}); });
  CHECK(given.make({DType::float32, {2}}, "w", 1) == Tensor::of({2}, std::vector{0.5F, -3.0F}));
  Initialiser with_row = given;
  with_row.zero_row = 0;
  CHECK_THROWS_WITH_AS(
      with_row.make({DType::float32, {2}}, "w", 1),
      "the initialiser of the parameter 'w' gives its values and a row of zeros; leave out one of them",
      UserError);
  CHECK_THROWS_WITH_AS(
      given.make({DType::float32, {1, 2}}, "w", 1),
      "the parameter 'w' is float32[1,2], but its initial values are float64[2]; give values of its "
      "shape",
      UserError);
  CHECK_THROWS_WITH_AS(
      Initialiser::given(nullptr).make({DType::float32, {2}}, "w", 1),
      "the parameter 'w' is described by a store that has already read its initial values; give "
      "another initialiser, and copy the values with ParameterStore::write",
      UserError);
}

}  // namespace plexaura::testing::initialiser_test
