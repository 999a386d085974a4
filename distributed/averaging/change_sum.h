#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/exchange/collective.h"
#include "core/exchange/strategy.h"
#include "distributed/compression/compression.h"

namespace plexaura {

// Sums the ranks' parts of the mean change of their weights: as they are, or with fewer bytes. What does not cross then is owed by the
// rank, and added to what it brings the next time (see Compression), unless the change that it brings then contains it anyway.
// A part is weighed before it comes here. So what is owed is a part of a mean, too, and has the same effect in any later
// one, however many samples that has.
class ChangeSum {
 public:
  // `ranks` must outlive it. Without a compression everything crosses as it is.
  ChangeSum(Collective& ranks, std::unique_ptr<Compression> compression, bool owes = true)
      : ranks_(ranks), compression_(std::move(compression)), owes_(owes) {}

  // `slices`: what is summed at once, as slices of the trainables in the value arena. Throws UserError where it cannot
  // compress.
  void begin(const Placement& placement, std::span<const Bucket> slices);
  // Collective, in place: the parts of a slice, and behind them what crosses as it is. T is that of the value arena.
  template <class T>
  void sum(std::size_t slice, std::span<T> changes, std::string_view what);
  // See Compression.
  std::int64_t bytes_sent() const { return compression_ ? compression_->bytes_sent() : 0; }
  // What the sum of a slice has left is what this rank owes of it. Until then it owes what it owed before.
  void settle(std::size_t slice);

  // For a strategy's state. `is_settled`: every sum that was made.
  void keep(bool is_settled, std::vector<StrategyState>& state) const;
  void take(const StrategyState& part);

 private:
  std::size_t compress(std::size_t slice, std::span<float> changes, std::string_view what);

  Collective& ranks_;
  std::unique_ptr<Compression> compression_;
  bool owes_;
  bool has_dropped_ = false;  // what a checkpoint holds in another form
  const Placement* placement_ = nullptr;
  std::vector<Bucket> slices_;
  // As trainables lie in the value arena; empty without a compression.
  Tensor owed_;
  Tensor left_;  // by sums that are not settled
};

}  // namespace plexaura
