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
  // True: no rank uses a mean before all ranks have confirmed that they have it. So if a rank dies, either all
  // ranks that are left have the mean or no rank has used it. Cannot be combined with a delay.
  bool may_lose_ranks = false;
  // The number of fragments into which the parameters are cut. The fragments are of about equal size and are
  // averaged in turn. A parameter is never cut, so a parameter larger than a fragment may make the number of
  // fragments smaller.
  std::int64_t fragments = 1;
  // Number of steps for which a thread exchanges the changes before their mean is used. With 0, the training
  // thread exchanges them and waits. It also does so at the end of an epoch, and if the next exchange would
  // begin before this one ends.
  std::int64_t delay = 0;
  // True: with a compression, the part of a change that is not sent is added to the next change. False for
  // ranks that keep their own weights after a mean: their next change already contains that part.
  bool owes_what_stays = true;
};

// A mean over the ranks: the change of a fragment of the weights since the anchor.
template <class T>
struct Mean {
  std::size_t first = 0;   // index, in the value arena, of the first element of the fragment
  std::span<T> changes;    // the mean change, which the caller may overwrite
  std::span<const T> own;  // this rank's change when the exchange began; empty if it has made no step since
};

// Computes how the weights and buffers of ranks that train separately have changed since an anchor, which is
// the same on all ranks. The result is a mean over the ranks, each weighed by its samples since the last
// mean. The tensors have the layout of the value arena without the frozen parameters at its end: trainable
// parameters come first, then buffers.
class MeanChange {
 public:
  // `ranks` are the ranks that train, and must outlive this object. Without a compression, changes are
  // exchanged uncompressed.
  MeanChange(Collective& ranks, const MeanOptions& options,
             std::unique_ptr<Compression> compression = nullptr);
  ~MeanChange() { give_up(); }

  // Sets the anchor to the current weights. Throws UserError for weights that ranks cannot sum, or that the
  // compression does not support.
  void begin(WeightsImmigration& border);
  void count_step();
  // Collective. Returns the next mean that is due after this step, or nothing if none is left. Each fragment has a mean
  // every `every` steps and at the end of an epoch; if there are more fragments than `every`, after each step. The
  // caller uses a mean before the next call. T is dtype().
  template <class T>
  std::optional<Mean<T>> next(std::int64_t every);
  // True while an exchange is under way. Depends only on the steps of this rank, so it is the same on all
  // ranks.
  bool is_exchanging() const { return exchange_.has_value(); }
  // Collective among the ranks that are left after ranks were lost. Makes the counts of steps equal on all of
  // them. Returns the last mean if other ranks have used it and this rank has not; otherwise nothing.
  template <class T>
  std::optional<Mean<T>> catch_up();
  // Ends the thread of this object, if there is one, without waiting for other ranks.
  void give_up() noexcept;

  DType dtype() const { return anchor_.dtype(); }
  Tensor& anchor() { return anchor_; }
  const Tensor& anchor() const { return anchor_; }
  // Returns the weights in the border's memory.
  template <class T>
  std::span<T> values() const;
  std::size_t trainables() const;

  std::optional<ExchangeRecord> take_exchange_record() { return meter_.take(options_.delay > 0); }

  // copy_values() returns a copy of the border's weights, and write_values() writes such a copy back. After
  // write_values() the caller calls store_values() of the border.
  Tensor copy_values() const;
  void write_values(const Tensor& copy) const;

  // True if a step was made since the last mean of any fragment, so that the weights may differ from the anchor.
  bool has_moved() const;
  // Adds to a strategy's state the counts, the owed part, and a mean that this rank has received and not
  // used.
  void keep_counts(std::vector<StrategyState>& state) const;
  // Restores `part` if it is one that keep_counts() wrote. Throws UserError for counts that no run writes.
  void take_counts(const StrategyState& part);

 private:
  struct Fragment {
    Bucket slice;              // the fragment's slice of the value arena; buffers belong to the last fragment
    Bucket trainables;         // the part of `slice` with trainable parameters
    std::int64_t bytes = 0;    // bytes of the fragment's parameters
    std::int64_t steps = 0;    // number of steps since the fragment's last mean
    std::int64_t samples = 0;  // number of this rank's samples since the fragment's last mean
  };
  // An exchange that has begun and whose mean was not used yet.
  struct Exchange {
    std::size_t fragment = 0;
    std::int64_t steps = 0;  // steps of the fragment when the exchange began
    std::int64_t samples = 0;
    std::int64_t until = 0;  // value of clock_ at which a delayed mean is used; 0 without a delay
    bool is_made = false;    // true if this rank has the mean
    std::string what = {};
  };
  // The number of means that a rank has used, its clock, and the steps of each fragment.
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
  bool is_first_ = false;  // true if this rank was rank 0 in begin()
  std::vector<Fragment> fragments_;
  Tensor anchor_;
  Tensor changes_;  // this rank's part of the mean; after the exchange, the mean
  Tensor own_;      // this rank's changes when the exchange began; empty without a delay
  mutable std::optional<Exchange> exchange_;
  std::int64_t taken_ = 0;  // number of means that this rank has used
  std::int64_t clock_ = 0;  // steps since the last end of an epoch
  // Null without a delay and after give_up(). The last member, so that it is destroyed first.
  std::unique_ptr<ExchangeThread> thread_;
};

template <class T>
std::span<T> MeanChange::values() const {
  return {reinterpret_cast<T*>(border_->fetch_values().data()), static_cast<std::size_t>(anchor_.elements())};
}

}  // namespace plexaura
