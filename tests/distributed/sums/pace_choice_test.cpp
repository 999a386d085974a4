#include "distributed/sums/pace_choice.h"

#include <array>
#include <doctest/doctest.h>
#include <vector>

namespace plexaura::testing::pace_choice_test {
namespace {

// Returns the paces of a number of calls, each of which takes the seconds given for its pace.
std::vector<int> paces_of(PaceChoice& choice, int calls, std::int64_t bytes,
                          const std::array<double, 3>& seconds) {
  std::vector<int> paces;
  CallSignature call = announce(Call::sum, "values", DType::uint8, bytes);
  for (int i = 0; i < calls; ++i) {
    call.pace = choice.next(call);
    choice.took(call, seconds.at(call.pace));
    paces.push_back(call.pace);
  }
  return paces;
}

}  // namespace

TEST_CASE("pace choice: each is tried, and then the fastest is kept") {
  PaceChoice choice;
  CHECK(paces_of(choice, 5, 1000, {1, 2, 3}) == std::vector{0, 1, 2, 0, 0});
  CHECK(paces_of(choice, 5, 1'000'000, {2, 1, 3}) == std::vector{0, 1, 2, 1, 1});
  CHECK(paces_of(choice, 5, 100'000'000, {3, 2, 1}) == std::vector{0, 1, 2, 2, 2});
  CHECK(paces_of(choice, 1, 1010, {1, 2, 3}) == std::vector{0});
}

TEST_CASE("pace choice: when another pace has become the fastest, it is found") {
  PaceChoice choice;
  paces_of(choice, 100, 1000, {1, 3, 3});
  CHECK(paces_of(choice, 1600, 1000, {4, 3, 5}).back() == 1);
  CHECK(paces_of(choice, 1600, 1000, {4, 5, 3}).back() == 2);
  CHECK(paces_of(choice, 1600, 1000, {1, 3, 3}).back() == 0);
}

TEST_CASE("pace choice: a first call that was disturbed is forgotten with the next trial") {
  PaceChoice choice;
  paces_of(choice, 1, 1000, {100, 2, 2});
  CHECK(paces_of(choice, 1600, 1000, {1, 2, 2}).back() == 0);
}

}  // namespace plexaura::testing::pace_choice_test
