#include "core/exchange/strategy.h"

#include <doctest/doctest.h>
#include <string>

#include "tests/support/error_text.h"

namespace plexaura::testing::strategy_test {

namespace {

// Records each call of the strategy itself. Has a gradient part that does not sum, and other parts as given.
class Noting : public Strategy, public GradientSum {
 public:
  StrategyParts parts() override { return declared; }
  void begin(WeightsImmigration&) override { calls += "begin "; }
  void give_up() noexcept override { calls += "give_up "; }
  void end() override { calls += "end "; }
  std::optional<ExchangeRecord> take_exchange_record() override { return ExchangeRecord{.bytes = 7}; }
  std::string account() const override { return "two lines"; }
  void continue_from(const Strategy& former) override { continued = &former; }
  void gradients_ready(std::size_t, Event&) override {}
  UpdateAnswer before_update(std::size_t) override { return {}; }

  StrategyParts declared{.gradients = this};
  std::string calls;
  const Strategy* continued = nullptr;
};

struct Empty final : Dealer {
  Draw draw(const DealtSteps&) override { return {}; }
  void stop() override {}
};

}  // namespace

TEST_CASE("strategy: without one there are no parts, and each call does nothing") {
  Strategy& none = strategy_or_none(nullptr);
  CHECK(none.parts().gradients == nullptr);
  CHECK(none.parts().scope == GradientScope::global);
  none.give_up();
  none.end();
  CHECK_FALSE(none.take_exchange_record());
  CHECK(none.account().empty());
  Noting given;
  CHECK(&strategy_or_none(&given) == &given);
}

TEST_CASE("strategy: a declaration about a part that is missing is refused") {
  const auto error = [](const StrategyParts& parts) {
    return user_error([&] { check_strategy_parts(parts); });
  };
  CHECK(error({.shows_weights = true}) ==
        "the strategy declares StrategyParts::shows_weights and has no StrategyParts::weights; give it that "
        "part, or leave the declaration out");
  CHECK(error({.agrees = true}).find("StrategyParts::agrees and has no StrategyParts::gradients") !=
        std::string::npos);
  CHECK(error({.updates_late = true}).find("updates_late") != std::string::npos);
  CHECK(error({.on_device = true}).find("on_device") != std::string::npos);
  Empty dealer;
  CHECK(error({.dealer = &dealer}) ==
        "the strategy has a dealer, with which no step is summed, and gradients of global scope; set "
        "StrategyParts::scope to GradientScope::local");
  CHECK(error({.scope = GradientScope::local})
            .starts_with("the strategy has gradients of local scope and no StrategyParts::weights"));
  Noting strategy;
  WeightExchange weights;
  strategy.declared = {.gradients = &strategy,
                       .weights = &weights,
                       .dealer = &dealer,
                       .scope = GradientScope::local,
                       .shows_weights = true,
                       .agrees = true,
                       .updates_late = true,
                       .on_device = true};
  check_strategy_parts(strategy.declared);
}

TEST_CASE("strategy: a decorator has the parts of the strategy within, and hands on each call") {
  Noting inner;
  StrategyDecorator decorated(inner);
  CHECK(decorated.parts().gradients == &inner);
  decorated.give_up();
  decorated.end();
  CHECK(inner.calls == "give_up end ");
  CHECK(decorated.take_exchange_record()->bytes == 7);
  CHECK(decorated.account() == "two lines");
  Noting former;
  decorated.continue_from(former);
  CHECK(inner.continued == &former);
  inner.continued = nullptr;
  decorated.continue_from(StrategyDecorator(former));
  CHECK(inner.continued == &former);
}

}  // namespace plexaura::testing::strategy_test
