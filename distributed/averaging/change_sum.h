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

// Sums the ranks' parts of the mean change of their weights, uncompressed or compressed. With a compression,
// a part of a rank's change is not transmitted. The rank owes this part, and adds it to its change in the
// next exchange (see Compression). If `owes` is false, ranks owe nothing: their next change contains the part
// anyway. Callers weigh a change by the rank's samples before they pass it here. So an owed part is already
// weighed, and counts alike in every later mean.
class ChangeSum {
 public:
  // `ranks` must outlive this object. If `compression` is null, changes are summed uncompressed.
  ChangeSum(Collective& ranks, std::unique_ptr<Compression> compression, bool owes = true)
      : ranks_(ranks), compression_(std::move(compression)), owes_(owes) {}

  // `slices` are the slices of the trainable parameters in the value arena, each of which one call of sum()
  // sums. Throws UserError for weights that the compression does not support.
  void begin(const Placement& placement, std::span<const Bucket> slices);
  // Sums the changes over the ranks, in place. Collective. `changes` holds this rank's part of a slice, followed by
  // elements that are never compressed. T is the type of the value arena.
  template <class T>
  void sum(std::size_t slice, std::span<T> changes, std::string_view what);
  // Returns Compression::bytes_sent() of the compression; 0 without a compression.
  std::int64_t bytes_sent() const { return compression_ ? compression_->bytes_sent() : 0; }
  // Called when a sum of the slice is used. From then on this rank owes what that sum did not transmit.
  // Before the call it owes what it owed before the sum.
  void accept(std::size_t slice);

  // Adds the owed part to a strategy's state. `is_accepted` is true if accept() was called for every sum that was made;
  // otherwise the part that would be owed after accept() is added too.
  void keep(bool is_accepted, std::vector<StrategyState>& state) const;
  void take(const StrategyState& part);

 private:
  std::size_t compress(std::size_t slice, std::span<float> changes, std::string_view what);

  Collective& ranks_;
  std::unique_ptr<Compression> compression_;
  bool owes_;
  bool has_dropped_ = false;  // true if take() has dropped state that it cannot use, which rank 0 reports
  const Placement* placement_ = nullptr;
  std::vector<Bucket> slices_;
  // The owed part, with the layout of the trainable parameters in the value arena. Both tensors are empty
  // without a compression.
  Tensor owed_;
  Tensor left_;  // the part that sums which are not accepted yet did not transmit
};

}  // namespace plexaura
