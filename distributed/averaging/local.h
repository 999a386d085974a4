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

struct LocalOptions {
  std::int64_t every = 16;  // number of steps between two averages
  // Number of epochs at the start in which the weights are averaged after every step, without the outer
  // optimizer.
  std::int64_t first_epochs = 0;
  // The outer optimizer, used after the first epochs. With learning rate 1 and momentum 0 the weights become
  // the plain averages.
  double outer_learning_rate = 1;
  double outer_momentum = 0;  // coefficient of Nesterov's momentum
  // See the members of MeanOptions with these names.
  std::int64_t fragments = 1;  // at most `every`
  std::int64_t delay = 0;
};

// The strategy `local`: each rank trains its own weights on its own share of the data, with its own optimizer
// state. Every `every` steps, and at the end of each epoch, the weights of all ranks are averaged. The
// average is over the changes since the last average, and each rank is weighed by its samples since then. An
// outer optimizer, SGD with Nesterov's momentum, may use the average change as its gradient. Buffers are
// averaged too, without the outer optimizer. Frozen parameters do not change. Fragments of the weights may be
// averaged in turn. Training may continue while an average is computed: the changes that a rank makes
// meanwhile stay in its weights.
class Local final : public Strategy, public WeightExchange, public KeptState {
 public:
  // `ranks` are the ranks that train, and must outlive the strategy. For `may_lose_ranks` see MeanOptions.
  Local(Collective& ranks, const LocalOptions& options, bool may_lose_ranks = false,
        std::unique_ptr<Compression> compression = nullptr)
      : change_(ranks, {may_lose_ranks, options.fragments, options.delay}, std::move(compression)),
        options_(options) {}

  StrategyParts parts() override {
    return {.weights = this, .state = this, .scope = GradientScope::local, .realigns_weights = true};
  }
  // Throws what MeanChange::begin() throws.
  void begin(WeightsImmigration& border) override;
  void after_update() override;
  bool is_exchanging() const override { return change_.is_exchanging(); }
  std::optional<ExchangeRecord> take_exchange_record() override { return change_.take_exchange_record(); }
  std::vector<StrategyState> state() const override;
  void take_state(std::vector<StrategyState> state) override;
  void complete_exchange() override;
  void give_up() noexcept override { change_.give_up(); }

 private:
  bool has_velocity() const { return options_.outer_momentum > 0; }
  bool is_first_epoch() const;  // true in the first epochs, whose averages are plain
  std::int64_t every() const { return is_first_epoch() ? 1 : options_.every; }
  template <class T>
  void average();
  template <class T>
  void take(const Mean<T>& mean);
  template <class T>
  void take_outer_step(const Mean<T>& mean);

  MeanChange change_;  // changes since the last average
  LocalOptions options_;
  WeightsImmigration* border_ = nullptr;
  // State of the outer optimizer for trainable parameters, with their layout in the value arena. Empty
  // without momentum.
  Tensor velocity_;
};

}  // namespace plexaura
