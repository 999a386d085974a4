#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/exchange/strategy.h"
#include "distributed/servers/jobs/logical_weights.h"
#include "distributed/servers/jobs/visitor.h"
#include "distributed/servers/server_rule.h"

namespace plexaura {

// The strategies `async-server` and `downpour` of a client that is a job of its own: it trains on its own data, pushes every
// so many steps and at the end of an epoch what it has learned, and goes on with the weights that the server has then:
// these are validated.
class Visiting final : public Strategy, public WeightExchange {
 public:
  // The visitor outlives this, and has joined when it begins. `push_every`: steps; none: at the end of an epoch alone.
  Visiting(Visitor& visitor, const ServerRule& rule, std::optional<std::int64_t> push_every)
      : visitor_(visitor), rule_(rule), push_every_(push_every) {}

  StrategyParts parts() override {
    return {.weights = this, .scope = GradientScope::local, .realigns_weights = true, .shows_weights = true};
  }

  void begin(WeightsImmigration& border) override;
  void after_update() override;
  void show_weights() override { exchange(); }
  void end() override { visitor_.leave(); }

 private:
  void exchange();
  void take(std::vector<std::byte> weights);

  Visitor& visitor_;
  ServerRule rule_;
  std::optional<std::int64_t> push_every_;
  WeightsImmigration* border_ = nullptr;
  std::optional<LogicalWeights> form_;
  std::int64_t steps_ = 0;          // since its last push
  std::vector<std::byte> began_;    // from which its changes count
  std::vector<std::byte> weights_;  // its own, row-major
  std::vector<std::byte> pushed_;
};

}  // namespace plexaura
