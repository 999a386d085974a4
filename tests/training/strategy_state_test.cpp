#include "training/strategy_state.h"

#include <doctest/doctest.h>

namespace plexaura::testing::strategy_state_test {

TEST_CASE("a rank keeps what all have in common and what it has of its own") {
  const Tensor value = Tensor::scalar(1.0);
  SavedStrategy saved{
      {"shared.steps", value}, {"rank0.sum", value}, {"rank1.sum", value}, {"rank10.sum", value}};
  keep_state_of(1, saved);
  REQUIRE(saved.size() == 2);
  CHECK(saved[0].first == "shared.steps");
  CHECK(saved[1].first == "rank1.sum");
  CHECK(strategy_state_of(saved, 1, true).size() == 2);
  CHECK(strategy_state_of(saved, 1, false).size() == 1);
}

}  // namespace plexaura::testing::strategy_state_test
