#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/exchange/collective.h"
#include "core/exchange/strategy.h"
#include "distributed/averaging/change_sum.h"
#include "distributed/compression/compression.h"
#include "distributed/exchange/exchange_meter.h"
#include "distributed/exchange/exchange_thread.h"

namespace plexaura {

struct MeanOptions {
  // Nobody takes a mean before all ranks have told each other that they hold it. So where a rank dies, either all that are
  // left hold the mean or nobody has taken it. Not together with a delay.
  bool may_lose_ranks = false;
  // The parameters are cut into so many parts of about the same size, or fewer where one parameter is larger than that.
  // Each has means of its own, in turn with those of the others.
  std::int64_t fragments = 1;
  // For how many steps a thread of its own makes an exchange, before its mean is taken; 0: the thread that trains makes
  // it, and waits. Not at the end of an epoch, and not where the next exchange would come first.
  std::int64_t delay = 0;
  // With a compression, what of a change does not cross is added to the next one. Not where ranks keep their own weights
  // behind a mean: there the next change contains it.
  bool owes_what_stays = true;
};

// A mean over the ranks: how a fragment of the weights has moved away from the anchor.
template <class T>
struct Mean {
  std::size_t first = 0;   // of its elements, in the value arena
  std::span<T> changes;    // in memory that the caller may write to
  std::span<const T> own;  // of this rank, when the exchange began; empty: it has made no step since
};

// How the weights and buffers of ranks that train for themselves have moved away from an anchor, which is the same on all
// ranks: as means over the ranks, each weighed by the samples that it has had since the last one. What it holds
// lies like the value arena, without the frozen parameters at its end; trainables come first.
class MeanChange {
 public:
  // `ranks`: those that train; it must outlive this. Without a compression changes cross as they are.
  MeanChange(Collective& ranks, const MeanOptions& options,
             std::unique_ptr<Compression> compression = nullptr);
  ~MeanChange() { give_up(); }

  // Puts the anchor where the weights are. Throws UserError for weights of a type that ranks do not sum, or do not
  // compress.
  void begin(WeightsImmigration& border);
  void count_step();
  // Collective. The next mean that is to be taken behind the step, until there is none: every so many steps, and at the
  // end of an epoch, each fragment has one. The caller takes it at once. T is that of dtype().
  template <class T>
  std::optional<Mean<T>> next(std::int64_t every);
  // Whether the thread makes one, as far as this rank's steps tell: the same on all ranks.
  bool is_exchanging() const { return exchange_.has_value(); }
  // Collective, among those that are left where ranks were lost: all count the same steps then. The same mean again where
  // others have taken it and this rank has not; else nothing.
  template <class T>
  std::optional<Mean<T>> catch_up();
  // No thread of this uses the border any more.
  void give_up() noexcept;

  DType dtype() const { return anchor_.dtype(); }
  Tensor& anchor() { return anchor_; }
  const Tensor& anchor() const { return anchor_; }
  // What the border shows of the weights.
  template <class T>
  std::span<T> values() const;
  std::size_t trainables() const;

  std::optional<ExchangeRecord> take_exchange_record() { return meter_.take(options_.delay > 0); }

  // Copies of what the border's weights are, and back. The second wants store_values() behind it.
  Tensor copy_values() const;
  void write_values(const Tensor& copy) const;

  // Whether there was a step since the last mean, so that the weights may not be at the anchor.
  bool has_moved() const;
  // For a strategy's state: what was counted, what is owed, and a mean that this rank holds and has not taken.
  void keep_counts(std::vector<StrategyState>& state) const;
  // The same back, where the part is one of these. Throws UserError for numbers that no run writes.
  void take_counts(const StrategyState& part);

 private:
  struct Fragment {
    Bucket slice;              // in the value arena; buffers belong to the last one
    Bucket trainables;         // of it
    std::int64_t bytes = 0;    // of its parameters
    std::int64_t steps = 0;    // since its last mean
    std::int64_t samples = 0;  // of this rank, likewise
  };
  // One that was begun, and whose mean was not taken.
  struct Exchange {
    std::size_t fragment = 0;
    std::int64_t steps = 0;  // of the fragment, when it began
    std::int64_t samples = 0;
    std::int64_t until = 0;  // see clock_
    bool is_made = false;    // this rank holds the mean
    std::string what = {};
  };
  // How many means a rank has taken, its clock, and the steps of each fragment.
  using Progress = std::vector<std::int64_t>;

  std::vector<Fragment> cut(const Placement& placement) const;
  bool is_due(std::size_t fragment, std::int64_t every) const;
  std::optional<std::size_t> next_due(std::int64_t every) const;
  template <class T>
  void bring(std::size_t fragment);
  template <class T>
  void exchange();
  double weight_of(std::int64_t samples, std::string_view what);
  void await_exchange() const;
  Exchange* held(std::int64_t until, std::int64_t fragments);
  template <class T>
  Mean<T> take();
  Progress progress() const;
  Progress farthest_progress();

  Collective& ranks_;
  MeanOptions options_;
  ChangeSum sum_;
  mutable ExchangeMeter meter_;
  WeightsImmigration* border_ = nullptr;
  bool is_first_ = false;  // of the ranks, which may have gone when the state is kept
  std::vector<Fragment> fragments_;
  Tensor anchor_;
  Tensor changes_;  // what is summed: this rank's part of the means
  Tensor own_;      // what this rank has brought, where there is a delay
  mutable std::optional<Exchange> exchange_;
  std::int64_t taken_ = 0;  // means
  std::int64_t clock_ = 0;  // steps since the last end of an epoch
  // Null without a delay, and when this was given up. Goes first.
  std::unique_ptr<ExchangeThread> thread_;
};

template <class T>
std::span<T> MeanChange::values() const {
  return {reinterpret_cast<T*>(border_->fetch_values().data()), static_cast<std::size_t>(anchor_.elements())};
}

}  // namespace plexaura
