#pragma once

#include <cstdint>
#include <optional>

#include "core/exchange/collective.h"
#include "core/exchange/strategy.h"

namespace plexaura {

// Adds a broadcast to another strategy: every `every` steps all ranks get the weights, the buffers and the
// optimizer's state of rank 0. It is used if ranks have different kinds of processors, whose updates may
// round differently.
class Rebroadcast final : public StrategyDecorator, public WeightExchange {
 public:
  // `inner` and `ranks` must outlive this object. `ranks` are the ranks that train. `every` is a number of
  // steps, at least 1.
  Rebroadcast(Strategy& inner, Collective& ranks, std::int64_t every);

  StrategyParts parts() override { return parts_; }
  void begin(WeightsImmigration& border) override;
  void after_update() override;
  void show_weights() override { weights_.show_weights(); }
  void take_weights_back() override { weights_.take_weights_back(); }
  bool is_exchanging() const override { return weights_.is_exchanging(); }

 private:
  WeightExchange nothing_;  // stands for the WeightExchange of an inner strategy without one
  StrategyParts parts_;
  WeightExchange& weights_;  // the WeightExchange of the inner strategy, or nothing_
  Collective& ranks_;
  std::int64_t every_;
  WeightsImmigration* border_ = nullptr;
};

// Called if ranks have different kinds of processors. Puts a Rebroadcast of the strategy into `made`, unless
// the strategy realigns weights itself or is null. Returns the strategy to train with.
Strategy* realign(Strategy* strategy, Collective& ranks, std::int64_t every,
                  std::optional<Rebroadcast>& made);

}  // namespace plexaura
