#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/params/weights_immigration.h"
#include "core/ranks/collective.h"
#include "distributed/strategies/exchange_meter.h"

namespace plexaura {

// How the weights and buffers of ranks that train for themselves have moved away from an anchor, which is the same on all
// ranks: as a mean over the ranks, each weighed by the samples that it has had since the last one. What it holds
// lies like the value arena, without the frozen parameters at its end.
class MeanChange {
 public:
  // `ranks`: those that train; it must outlive this. `may_lose_ranks`: nobody takes a mean before all ranks have told each
  // other that they hold it. So where a rank dies, either all that are left hold the mean or nobody has taken it.
  MeanChange(Collective& ranks, bool may_lose_ranks)
      : ranks_(ranks), may_lose_ranks_(may_lose_ranks), meter_(ranks) {}

  // Puts the anchor where the weights are. Throws UserError for weights of a type that ranks do not sum.
  void begin(WeightsImmigration& border);
  // Counts a step. Whether a mean is due behind it: see is_due().
  bool step(std::int64_t every);
  // After so many steps since the last one, and at the end of an epoch.
  bool is_due(std::int64_t every) const;

  DType dtype() const { return anchor_.dtype(); }
  Tensor& anchor() { return anchor_; }
  const Tensor& anchor() const { return anchor_; }
  // What the border shows of the weights. T is that of dtype(); trainables come first.
  template <class T>
  std::span<T> values() const;
  std::size_t trainables() const;
  // Collective. The mean, in memory that the caller may write to; steps and samples are counted anew.
  template <class T>
  std::span<T> mean();
  // Collective, among those that are left where ranks were lost: all count the same steps then. The same mean again where
  // others have taken it and this rank has not; else nothing.
  template <class T>
  std::span<T> catch_up();

  std::optional<ExchangeRecord> take_exchange_record() { return meter_.take(false); }

  // Copies of what the border's weights are, and back. The second wants store_values() behind it.
  Tensor copy_values() const;
  void write_values(const Tensor& copy) const;

  // For a strategy's state: what was counted, and a mean that this rank holds and has not taken.
  std::int64_t steps() const { return steps_; }
  void keep_counts(std::vector<StrategyState>& state) const;
  // The same back, where the part is one of these.
  void take_counts(const StrategyState& part);

 private:
  // How many means a rank has taken, and the steps since the last one.
  using Progress = std::pair<std::int64_t, std::int64_t>;
  Progress farthest_progress();
  template <class T>
  void sum_changes();
  template <class T>
  std::span<T> take();

  Collective& ranks_;
  bool may_lose_ranks_;
  ExchangeMeter meter_;
  WeightsImmigration* border_ = nullptr;
  Tensor anchor_;
  Tensor changes_;            // what is summed, and behind it the samples
  bool holds_mean_ = false;   // there, and has not taken it
  std::int64_t taken_ = 0;    // means
  std::int64_t steps_ = 0;    // since the last one
  std::int64_t samples_ = 0;  // of this rank
};

template <class T>
std::span<T> MeanChange::values() const {
  return {reinterpret_cast<T*>(border_->fetch_values().data()), static_cast<std::size_t>(anchor_.elements())};
}

}  // namespace plexaura
