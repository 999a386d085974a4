#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plexaura {

// A contiguous range of positions: first, first + 1, …, first + count - 1.
struct Slice {
  std::int64_t first = 0;
  std::int64_t count = 0;

  bool operator==(const Slice&) const = default;
};

// Returns one of `parts` parts of a slice. The parts are as even as possible. If they differ, the first ones
// have one element more (4 over 3: 2, 1, 1).
Slice split_evenly(Slice whole, std::int64_t parts, std::int64_t part);

// Returns the order in which an epoch visits the samples 0 … size - 1: that order itself, or, with `shuffle`,
// a permutation that is a function of (size, seed, epoch) and the same on every platform.
std::vector<std::int64_t> epoch_order(std::int64_t size, bool shuffle, std::uint64_t seed,
                                      std::int64_t epoch);

// Returns the order of an epoch in which each sample is drawn at random, with replacement: as many samples as there are
// weights, each in proportion to its weight. So a sample may come several times or not at all. It is a function of
// (weights, seed, epoch) and the same on every platform. Throws UserError unless the weights are
// finite and not negative, with a sum that is finite and above 0.
std::vector<std::int64_t> weighted_order(std::span<const double> weights, std::uint64_t seed,
                                         std::int64_t epoch);

// Returns the weights of samples with which each class is drawn in proportion to its weight. Throws UserError for a class
// with a weight above 0 and without samples.
std::vector<double> sample_weights(std::span<const std::int64_t> labels,
                                   std::span<const double> class_weights);

// The division of an epoch's order into batches. The global batch of a step is a contiguous range of the
// order; the last batch is shorter if the division leaves a remainder. Ranks, and then micro-batches, take
// contiguous slices of the batch, as even as possible and possibly empty. So no sample is repeated or lost in
// an epoch. All functions are pure.
struct BatchPlan {
  std::int64_t samples = 0;     // number of samples in the dataset
  std::int64_t batch_size = 1;  // number of samples of a step over all ranks
  std::int64_t ranks = 1;
  std::int64_t micro_batches = 1;  // number of micro-batches of each rank in each step

  // Throws UserError for a number that is not positive, and for too many micro-batches.
  void check() const;
  std::int64_t steps_per_epoch() const;
  // Return positions in the epoch's order: the batch of a step over all ranks, and the part of a rank and
  // micro-batch.
  Slice global_batch(std::int64_t step) const;
  Slice rank_share(std::int64_t step, std::int64_t rank) const;
  Slice micro_batch(std::int64_t step, std::int64_t rank, std::int64_t micro) const;
  // Returns every size that a micro-batch of this rank has in an epoch, in ascending order. Programs for
  // these sizes are compiled before the first step.
  std::vector<std::int64_t> micro_batch_sizes(std::int64_t rank) const;
};

}  // namespace plexaura
