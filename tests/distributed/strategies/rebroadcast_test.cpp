#include "distributed/strategies/rebroadcast.h"

#include <doctest/doctest.h>
#include <string>

namespace plexaura::testing::rebroadcast_test {

TEST_CASE("rebroadcast: the weights that the strategy within shows are shown") {
  struct Showing final : Strategy {
    HookSet hooks() const override { return {.show_weights = true}; }
    void show_weights() override { said += "shown "; }
    void take_weights_back() override { said += "taken back"; }
    std::string said;
  };
  Showing inner;
  SingleProcess alone;
  Rebroadcast strategy(inner, alone, 1);
  CHECK(strategy.hooks().show_weights);
  strategy.show_weights();
  strategy.take_weights_back();
  CHECK(inner.said == "shown taken back");
}

}  // namespace plexaura::testing::rebroadcast_test
