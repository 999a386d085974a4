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
// a rank owes the part of its change that is not transmitted, and adds it to its change of the next exchange
// (see Compression). It owes nothing if `owes` is false, for callers whose next change contains that part
// anyway. Callers weigh a part before they pass it here. So an owed part is a part of a mean too, and has the
// same effect in any later mean, however many samples that one has.
class ChangeSum {
 public:
  // `ranks` must outlive it. Without a compression, changes are summed uncompressed.
  ChangeSum(Collective& ranks, std::unique_ptr<Compression> compression, bool owes = true)
      : ranks_(ranks), compression_(std::move(compression)), owes_(owes) {}

  // `slices`: the slices of the trainables in the value arena, each of which one call of sum() sums. Throws
  // UserError for weights of a type that the compression does not support.
  void begin(const Placement& placement, std::span<const Bucket> slices);
  // Collective, in place. `changes` holds this rank's part of a slice, followed by elements that are never
  // compressed. T is the type of the value arena.
  template <class T>
  void sum(std::size_t slice, std::span<T> changes, std::string_view what);
  // Returns the bytes that the compression has sent; 0 without one. See Compression.
  std::int64_t bytes_sent() const { return compression_ ? compression_->bytes_sent() : 0; }
  // Called after a sum of the slice was used. From now on this rank owes what that sum did not transmit;
  // before the call it owes what it owed before the sum.
  void accept(std::size_t slice);

  // Adds the owed part to a strategy's state. `is_accepted`: accept() was called for every sum that was made.
  void keep(bool is_accepted, std::vector<StrategyState>& state) const;
  void take(const StrategyState& part);

 private:
  std::size_t compress(std::size_t slice, std::span<float> changes, std::string_view what);

  Collective& ranks_;
  std::unique_ptr<Compression> compression_;
  bool owes_;
  bool has_dropped_ = false;  // take() has reported and dropped state that it cannot use
  const Placement* placement_ = nullptr;
  std::vector<Bucket> slices_;
  // Both lie as the trainables do in the value arena, and are empty without a compression.
  Tensor owed_;
  Tensor left_;  // the part that the sums which are not accepted yet did not transmit
};

}  // namespace plexaura
