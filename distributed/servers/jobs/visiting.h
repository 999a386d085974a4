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

// The strategies `async-server` and `downpour` of a client that is a job of its own. It trains on its own
// data. After every `push_every` steps, and at the end of an epoch, it pushes what it has learned, and
// continues with the weights in the server's answer. Validation uses these weights too.
class Visiting final : public Strategy, public WeightExchange {
 public:
  // The visitor must outlive this object and must have joined before begin(). `push_every` is a number of
  // steps. If it is empty, the client pushes only at the end of an epoch.
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
  std::int64_t steps_ = 0;  // number of steps since the last push
  // The last weights that the server sent; changes are differences from these.
  std::vector<std::byte> began_;
  std::vector<std::byte> weights_;  // this client's own weights, row-major
  std::vector<std::byte> pushed_;
};

}  // namespace plexaura
