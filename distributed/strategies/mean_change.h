#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
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
  // `ranks`: those that train; it must outlive this.
  explicit MeanChange(Collective& ranks) : ranks_(ranks), meter_(ranks) {}

  // Puts the anchor where the weights are. Throws UserError for weights of a type that ranks do not sum.
  void begin(WeightsImmigration& border);
  // Counts a step. Whether a mean is due behind it: after so many steps, and at the end of an epoch.
  bool step(std::int64_t every);

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

  std::optional<ExchangeRecord> take_exchange_record() { return meter_.take(false); }

  // Copies of what the border's weights are, and back. The second wants store_values() behind it.
  Tensor copy_values() const;
  void write_values(const Tensor& copy) const;

  // Between two means, for a strategy's state: what was counted since the last one.
  std::int64_t steps() const { return steps_; }
  void keep_counts(std::vector<StrategyState>& state) const;
  // The same back, where the part is one of these.
  void take_counts(const StrategyState& part);

 private:
  Collective& ranks_;
  ExchangeMeter meter_;
  WeightsImmigration* border_ = nullptr;
  Tensor anchor_;
  Tensor changes_;  // what is summed, and behind it the samples
  std::int64_t steps_ = 0;
  std::int64_t samples_ = 0;  // of this rank
};

template <class T>
std::span<T> MeanChange::values() const {
  return {reinterpret_cast<T*>(border_->fetch_values().data()), static_cast<std::size_t>(anchor_.elements())};
}

}  // namespace plexaura
