#include "distributed/strategies/rebroadcast.h"

#include <doctest/doctest.h>
#include <string>

namespace plexaura::testing::rebroadcast_test {

TEST_CASE("rebroadcast: the weights that the strategy within shows are shown") {
  struct Showing final : Strategy, WeightExchange {
    StrategyParts parts() override { return {.weights = this, .shows_weights = true}; }
    void show_weights() override { said += "shown "; }
    void take_weights_back() override { said += "taken back"; }
    std::string said;
  };
  Showing inner;
  SingleProcess alone;
  Rebroadcast strategy(inner, alone, 1);
  CHECK(strategy.parts().shows_weights);
  strategy.show_weights();
  strategy.take_weights_back();
  CHECK(inner.said == "shown taken back");
}

TEST_CASE("rebroadcast: only the exchange of weights differs from that of the strategy within") {
  struct Other final : Strategy, GradientSum, KeptState, Server, Dealer, Courier {
    StrategyParts parts() override {
      return {.gradients = this,
              .dealer = this,
              .courier = this,
              .state = this,
              .server = this,
              .scope = GradientScope::local,
              .agrees = true,
              .updates_late = true,
              .on_device = true};
    }
    void gradients_ready(std::size_t, Event&) override {}
    UpdateAnswer before_update(std::size_t) override { return {}; }
    std::vector<StrategyState> state() const override { return {}; }
    void take_state(std::vector<StrategyState>) override {}
    void serve(WeightsImmigration&) override {}
    Draw draw(const DealtSteps&) override { return {}; }
    void stop() override {}
    void send(Stream, int, std::span<const std::byte>) override {}
    std::optional<std::vector<std::byte>> receive(Stream, std::string_view) override { return std::nullopt; }
    void close(Stream, bool) noexcept override {}
  };
  Other inner;
  SingleProcess alone;
  Rebroadcast strategy(inner, alone, 1);
  const StrategyParts parts = strategy.parts();
  CHECK(parts.weights == &strategy);
  CHECK(parts.realigns_weights);
  CHECK(parts.gradients == &inner);
  CHECK(parts.dealer == &inner);
  CHECK(parts.courier == &inner);
  CHECK(parts.state == &inner);
  CHECK(parts.server == &inner);
  CHECK(parts.scope == GradientScope::local);
  CHECK((parts.agrees && parts.updates_late && parts.on_device && !parts.shows_weights));
  CHECK_FALSE(strategy.is_exchanging());
}

TEST_CASE("rebroadcast: a strategy that realigns weights by itself, and none, stay as they are") {
  struct Realigning final : Strategy {
    StrategyParts parts() override { return {.realigns_weights = realigns}; }
    bool realigns = true;
  };
  Realigning inner;
  SingleProcess alone;
  std::optional<Rebroadcast> made;
  CHECK(realign(&inner, alone, 1, made) == &inner);
  CHECK(realign(nullptr, alone, 1, made) == nullptr);
  CHECK_FALSE(made);
  inner.realigns = false;
  Strategy* const strategy = realign(&inner, alone, 1, made);
  CHECK(strategy == &*made);
}

}  // namespace plexaura::testing::rebroadcast_test
