#pragma once

#include <cstdint>
#include <vector>

namespace plexaura {

// A contiguous run of positions: first, first + 1, … , first + count - 1.
struct Slice {
  std::int64_t first = 0;
  std::int64_t count = 0;

  bool operator==(const Slice&) const = default;
};

// The part of a slice that falls to one of `parts`: as even as possible, the first parts one larger (4 over
// 3: 2, 1, 1).
Slice split_evenly(Slice whole, std::int64_t parts, std::int64_t part);

// The order in which an epoch visits the samples 0 … size - 1: themselves, or, shuffled, a permutation that
// is a function of (size, seed, epoch), the same on every platform.
std::vector<std::int64_t> epoch_order(std::int64_t size, bool shuffle, std::uint64_t seed,
                                      std::int64_t epoch);

// How an epoch's order is dealt out: the global batch of a step is a contiguous run of it (the last one
// shorter where the division leaves a rest); ranks, then micro-batches, take contiguous slices of it, as even
// as possible, possibly empty. So no sample is repeated or lost in an epoch, whatever the numbers. All
// functions are pure.
struct BatchPlan {
  std::int64_t samples = 0;     // of the dataset
  std::int64_t batch_size = 1;  // samples of a step over all ranks
  std::int64_t ranks = 1;
  std::int64_t micro_batches = 1;  // of each rank, in each step

  // Throws UserError that names the number that is not positive, or too many micro-batches.
  void check() const;
  std::int64_t steps_per_epoch() const;
  // Positions in the epoch's order.
  Slice global_batch(std::int64_t step) const;
  Slice rank_share(std::int64_t step, std::int64_t rank) const;
  Slice micro_batch(std::int64_t step, std::int64_t rank, std::int64_t micro) const;
  // Every size that a micro-batch of this rank has in an epoch, ascending: the programs to compile before the
  // first step.
  std::vector<std::int64_t> micro_batch_sizes(std::int64_t rank) const;
};

}  // namespace plexaura
