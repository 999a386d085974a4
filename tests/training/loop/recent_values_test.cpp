#include "training/loop/recent_values.h"

#include <doctest/doctest.h>

namespace plexaura::testing::recent_values_test {

TEST_CASE("the median of recent values") {
  RecentValues values;
  CHECK(values.median() == 0);
  for (const double value : {5.0, 1.0, 3.0}) values.add(value);
  CHECK(values.median() == 3);
}

TEST_CASE("values that are no longer recent do not count") {
  RecentValues values;
  for (std::size_t i = 0; i < 10 * RecentValues::most; ++i) values.add(1);
  for (std::size_t i = 0; i < RecentValues::most / 2; ++i) values.add(2);
  CHECK(values.median() == 2);
  for (std::size_t i = 0; i < RecentValues::most; ++i) values.add(3);
  for (std::size_t i = 1; i < RecentValues::most / 2; ++i) values.add(4);
  CHECK(values.median() == 3);
}

}  // namespace plexaura::testing::recent_values_test
