#include "distributed/choices/exchange_cost.h"

#include <array>
#include <doctest/doctest.h>

namespace plexaura::testing::exchange_cost_test {

namespace {

// A call takes a millisecond, and another one for each thousand bytes.
constexpr CallSpeed calls{.latency = 1e-3, .bytes_per_second = 1e6};

std::size_t choice(std::vector<ExchangeWay> ways) { return choose_way(ways); }

}  // namespace

TEST_CASE("cost of an exchange: the last bucket counts twice where the others may be hidden") {
  constexpr std::array<std::int64_t, 2> buckets{10'000, 5'000};
  CHECK(expected_seconds(buckets, calls, false) == doctest::Approx(17e-3));
  CHECK(expected_seconds(buckets, calls, true) == doctest::Approx(23e-3));
}

TEST_CASE("cost of an exchange: buckets of another size have to be clearly faster") {
  CHECK(choice({{"auto", 8, 1.0}}) == 0);
  CHECK(choice({{"auto", 8, 1.0}, {"auto", 4, 0.76}}) == 0);
  CHECK(choice({{"auto", 8, 1.0}, {"auto", 4, 0.74}}) == 1);
  CHECK(choice({{"auto", 8, 1.0}, {"auto", 4, 0.74}, {"auto", 2, 0.6}}) == 1);
  CHECK(choice({{"auto", 8, 1.0}, {"auto", 4, 0.74}, {"auto", 2, 0.5}}) == 2);
  CHECK(choice({{"auto", 8, 1e-4}, {"auto", 4, 1e-5}}) == 0);  // the gain is too small to matter
}

TEST_CASE("cost of an exchange: another algorithm has to be so by more") {
  CHECK(choice({{"auto", 8, 1.0}, {"tree", 8, 0.51}}) == 0);
  CHECK(choice({{"auto", 8, 1.0}, {"tree", 8, 0.49}}) == 1);
}

}  // namespace plexaura::testing::exchange_cost_test
