#include "distributed/sums/pace_choice.h"

#include <doctest/doctest.h>
#include <vector>

namespace plexaura::testing::pace_choice_test {
namespace {

// The paces of so many calls, of which each takes what is said of its pace.
std::vector<int> paces_of(PaceChoice& choice, int calls, std::int64_t bytes, double first, double second) {
  std::vector<int> paces;
  CallSignature call = announce(Call::sum, "values", DType::uint8, bytes);
  for (int i = 0; i < calls; ++i) {
    call.pace = choice.next(call);
    choice.took(call, call.pace == 0 ? first : second);
    paces.push_back(call.pace);
  }
  return paces;
}

}  // namespace

TEST_CASE("pace choice: each is tried, and then the faster one is kept") {
  PaceChoice choice;
  CHECK(paces_of(choice, 5, 1000, 1, 2) == std::vector{0, 1, 0, 0, 0});
  CHECK(paces_of(choice, 5, 1'000'000, 2, 1) == std::vector{0, 1, 1, 1, 1});
  CHECK(paces_of(choice, 1, 1010, 1, 2) == std::vector{0});
}

TEST_CASE("pace choice: when another pace has become the faster one, it is found") {
  PaceChoice choice;
  paces_of(choice, 100, 1000, 1, 3);
  CHECK(paces_of(choice, 600, 1000, 4, 3).back() == 1);
  CHECK(paces_of(choice, 600, 1000, 1, 3).back() == 0);
}

TEST_CASE("pace choice: a first call that was disturbed is forgotten with the next trial") {
  PaceChoice choice;
  paces_of(choice, 1, 1000, 100, 2);
  CHECK(paces_of(choice, 600, 1000, 1, 2).back() == 0);
}

}  // namespace plexaura::testing::pace_choice_test
