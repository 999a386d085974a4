#include "testing/values.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <set>
#include <vector>

namespace plexaura::testing::values_test {

namespace {

std::vector<double> hundred(const Values& values) {
  Random random(1);
  return make({DType::float64, {100}}, values, random).to_doubles();
}

}  // namespace

TEST_CASE("numbers away from zero have either sign and a size between the bounds") {
  const std::vector<double> values = hundred(away_from_zero(0.5, 2));
  CHECK(std::ranges::all_of(values,
                            [](double value) { return std::abs(value) >= 0.5 && std::abs(value) < 2; }));
  const auto positive = std::ranges::count_if(values, [](double value) { return value > 0; });
  CHECK(positive > 20);
  CHECK(positive < 80);
}

TEST_CASE("distinct numbers stand a spacing apart around zero, in random order") {
  std::vector<double> values = hundred(distinct(0.25));
  CHECK(!std::ranges::is_sorted(values));
  std::ranges::sort(values);
  for (std::size_t i = 1; i < values.size(); ++i) CHECK(values[i] - values[i - 1] == 0.25);
  CHECK(values.front() == -12.5);
}

TEST_CASE("whole numbers are drawn from the first bound, and below the second") {
  const std::vector<double> values = hundred(whole(3, 7));
  CHECK(std::set<double>(values.begin(), values.end()) == std::set<double>{3, 4, 5, 6});
}

TEST_CASE("numbers between bounds fill all of the range") {
  const std::vector<double> values = hundred(between(-3, 5));
  CHECK(std::ranges::min(values) >= -3);
  CHECK(std::ranges::min(values) < -2);
  CHECK(std::ranges::max(values) > 4);
  CHECK(std::ranges::max(values) < 5);
}

}  // namespace plexaura::testing::values_test
