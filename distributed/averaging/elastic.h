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
  std::int64_t every = 16;  // number of steps between two exchanges
  double elasticity = 0.9;  // above 0, at most 1
};

// The strategy `elastic` (elastic averaging SGD): each rank trains its own weights on its own share of the
// data, and is tied to a centre, of which each rank has a copy. Every `every` steps, and at the end of each
// epoch, the centre moves by `elasticity` of the distance to the mean of all ranks' weights, in which each
// rank is weighed by its samples. Each of N ranks moves towards the centre by `elasticity` / N of the
// distance. Validation and checkpoints use the centre. Buffers are averaged. Frozen parameters do not change.
class Elastic final : public Strategy, public WeightExchange, public KeptState {
 public:
  // `ranks` are the ranks that train, and must outlive the strategy. For `may_lose_ranks` see MeanOptions.
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
  // Throws what MeanChange::begin() throws.
  void begin(WeightsImmigration& border) override;
  void after_update() override;
  void show_weights() override;
  void take_weights_back() override;
  std::optional<ExchangeRecord> take_exchange_record() override { return centre_.take_exchange_record(); }
  std::vector<StrategyState> state() const override;
  void take_state(std::vector<StrategyState> state) override;
  void complete_exchange() override;

 private:
  template <class T>
  void pull(const Mean<T>& mean);

  Collective& ranks_;
  MeanChange centre_;  // distances of the weights from the anchor, which is the centre
  ElasticOptions options_;
  WeightsImmigration* border_ = nullptr;
  std::optional<Tensor> own_;  // this rank's own weights while the centre is shown
};

}  // namespace plexaura
