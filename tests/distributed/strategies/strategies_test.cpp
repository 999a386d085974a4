#include "distributed/strategies/strategies.h"

#include <doctest/doctest.h>

#include "core/error.h"

namespace plexaura::testing::strategies_test {

TEST_CASE("make_strategy: one rank needs none, a wrong name is told with the nearest") {
  const std::unique_ptr<Communicator> alone = make_communicator();
  for (const std::string& name : strategy_names()) CHECK(make_strategy({.name = name}, *alone) == nullptr);
  CHECK_THROWS_WITH_AS(make_strategy({.name = "allreduced"}, *alone),
                       "there is no strategy 'allreduced'; known are allreduce, reduce-broadcast, send-recv, "
                       "local, elastic; did "
                       "you mean 'allreduce'?",
                       UserError);
  CHECK_THROWS_WITH_AS(
      make_strategy({.name = ""}, *alone),
      "there is no strategy ''; known are allreduce, reduce-broadcast, send-recv, local, elastic", UserError);
}

}  // namespace plexaura::testing::strategies_test
