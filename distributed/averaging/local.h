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
  std::int64_t every = 16;        // steps between two averages
  std::int64_t first_epochs = 0;  // in which every step is followed by a plain average
  // How the weights follow their averages, after the first epochs: 1 and 0 take them as they are.
  double outer_learning_rate = 1;
  double outer_momentum = 0;  // Nesterov's
  // See MeanOptions.
  std::int64_t fragments = 1;
  std::int64_t delay = 0;
};

// The strategy `local`: each rank trains for itself, on its own share of the data and with an optimizer's state of its
// own. Every so many steps, and at the end of each epoch, the weights of all ranks are averaged. Weights are averaged
// as changes since the last average, each rank's weighed by the samples that it has had since then. An outer
// optimizer may take the average change as its gradient: SGD with Nesterov's momentum. Buffers are averaged in the same
// way, without it; frozen parameters stay as they are. Fragments of the weights may be averaged in turn, and steps go on
// while an average is made: what a rank has learned meanwhile stays in its weights.
class Local final : public Strategy, public WeightExchange, public KeptState {
 public:
  // `ranks`: those that train; it must outlive the strategy. `may_lose_ranks`: see MeanOptions.
  Local(Collective& ranks, const LocalOptions& options, bool may_lose_ranks = false,
        std::unique_ptr<Compression> compression = nullptr)
      : change_(ranks, {may_lose_ranks, options.fragments, options.delay}, std::move(compression)),
        options_(options) {}

  StrategyParts parts() override {
    return {.weights = this, .state = this, .scope = GradientScope::local, .realigns_weights = true};
  }
  // Throws UserError as MeanChange does.
  void begin(WeightsImmigration& border) override;
  void after_update() override;
  bool is_exchanging() const override { return change_.is_exchanging(); }
  std::optional<ExchangeRecord> take_exchange_record() override { return change_.take_exchange_record(); }
  std::vector<StrategyState> state() const override;
  void take_state(std::vector<StrategyState> state) override;
  void settle() override;
  void give_up() noexcept override { change_.give_up(); }

 private:
  bool has_velocity() const { return options_.outer_momentum > 0; }
  bool is_first_epoch() const;  // one of the first, in which averages are plain
  std::int64_t every() const { return is_first_epoch() ? 1 : options_.every; }
  template <class T>
  void average();
  template <class T>
  void take(const Mean<T>& mean);
  template <class T>
  void take_outer_step(const Mean<T>& mean);

  MeanChange change_;  // since the last average
  LocalOptions options_;
  WeightsImmigration* border_ = nullptr;
  Tensor
      velocity_;  // of the outer optimizer, for trainables, as they lie in the value arena; empty without momentum
};

}  // namespace plexaura
