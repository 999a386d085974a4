#pragma once

#include <cstdint>
#include <optional>

#include "core/exchange/collective.h"
#include "core/exchange/strategy.h"

namespace plexaura {

// Another strategy with a broadcast: every `every` steps all ranks take the weights, the buffers and the
// optimizer's state of rank 0. It is used if ranks have different kinds of processors, whose updates may
// round differently.
class Rebroadcast final : public StrategyDecorator, public WeightExchange {
 public:
  // Both must outlive it. `ranks`: the ranks that train. `every`: number of steps, at least 1.
  Rebroadcast(Strategy& inner, Collective& ranks, std::int64_t every);

  StrategyParts parts() override { return parts_; }
  void begin(WeightsImmigration& border) override;
  void after_update() override;
  void show_weights() override { weights_.show_weights(); }
  void take_weights_back() override { weights_.take_weights_back(); }
  bool is_exchanging() const override { return weights_.is_exchanging(); }

 private:
  WeightExchange nothing_;  // used if the inner strategy exchanges no weights
  StrategyParts parts_;
  WeightExchange& weights_;  // those of the inner strategy
  Collective& ranks_;
  std::int64_t every_;
  WeightsImmigration* border_ = nullptr;
};

// Called if ranks have different kinds of processors. Puts a Rebroadcast of the strategy into `made`, unless
// the strategy realigns weights itself or is null. Returns the strategy to train with.
Strategy* realign(Strategy* strategy, Collective& ranks, std::int64_t every,
                  std::optional<Rebroadcast>& made);

}  // namespace plexaura
