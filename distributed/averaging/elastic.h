#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/exchange/collective.h"
#include "core/exchange/strategy.h"
#include "distributed/averaging/mean_change.h"

namespace plexaura {

struct ElasticOptions {
  std::int64_t every = 16;  // steps between two exchanges
  double elasticity = 0.9;  // above 0, at most 1
};

// The strategy `elastic` (elastic averaging SGD): each rank trains for itself, on its own share of the data, and is tied to
// a centre. Every so many steps, and at the end of each epoch, the centre goes `elasticity` of the way to the mean of all
// ranks, each weighed by its samples, and of N ranks each goes 1/N of that share of its own way to the centre. The
// centre is what is validated and saved. Each rank holds it. Buffers are averaged; frozen parameters stay as they are.
class Elastic final : public Strategy, public WeightExchange, public KeptState {
 public:
  // `ranks`: those that train; it must outlive the strategy. `may_lose_ranks`: see MeanOptions.
  Elastic(Collective& ranks, const ElasticOptions& options, bool may_lose_ranks = false,
          std::unique_ptr<Compression> compression = nullptr)
      : ranks_(ranks),
        centre_(ranks, {.may_lose_ranks = may_lose_ranks, .owes_what_stays = false}, std::move(compression)),
        options_(options) {}

  StrategyParts parts() override {
    return {.weights = this,
            .state = this,
            .scope = GradientScope::local,
            .realigns_weights = true,
            .shows_weights = true};
  }
  // Throws UserError as MeanChange does.
  void begin(WeightsImmigration& border) override;
  void after_update() override;
  void show_weights() override;
  void take_weights_back() override;
  std::optional<ExchangeRecord> take_exchange_record() override { return centre_.take_exchange_record(); }
  std::vector<StrategyState> state() const override;
  void take_state(std::vector<StrategyState> state) override;
  void settle() override;

 private:
  template <class T>
  void pull(const Mean<T>& mean);

  Collective& ranks_;
  MeanChange centre_;  // its anchor
  ElasticOptions options_;
  WeightsImmigration* border_ = nullptr;
  std::optional<Tensor> own_;  // the weights of this rank, while the centre is shown
};

}  // namespace plexaura
