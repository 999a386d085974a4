#include "training/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "training/data/random.h"

namespace plexaura {

namespace {

// A step may have more micro-batches than samples, up to this number. Some micro-batches are then empty.
constexpr std::int64_t most_micro_batches = 1024;

void require_positive(std::int64_t value, const char* what) {
  if (value < 1) throw UserError(fmt::format("the number of {} is {}; give 1 or more", what, value));
}

}  // namespace

Slice split_evenly(Slice whole, std::int64_t parts, std::int64_t part) {
  const std::int64_t each = whole.count / parts;
  const std::int64_t larger = whole.count % parts;
  return {whole.first + part * each + std::min(part, larger), each + (part < larger ? 1 : 0)};
}

std::vector<std::int64_t> epoch_order(std::int64_t size, bool shuffle, std::uint64_t seed,
                                      std::int64_t epoch) {
  std::vector<std::int64_t> order;
  try {
    order.resize(static_cast<std::size_t>(size));
  } catch (const std::exception&) {  // std::length_error or std::bad_alloc
    throw UserError(fmt::format(
        "the order of {} samples takes 8 bytes for each of them, and there is no memory for it", size));
  }
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!shuffle) return order;
  Random random{seed, static_cast<std::uint64_t>(epoch)};
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

std::vector<std::int64_t> weighted_order(std::span<const double> weights, std::uint64_t seed,
                                         std::int64_t epoch) {
  std::vector<double> sums;
  sums.reserve(weights.size());
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight >= 0 && std::isfinite(weight)))
      throw UserError(fmt::format("the weight of sample {} is {}; give finite numbers of 0 or more",
                                  sums.size(), weight));
    sums.push_back(sum += weight);
  }
  if (!(sum > 0 && std::isfinite(sum)))
    throw UserError(fmt::format(
        "the weights of the samples sum to {}; give at least one above 0, and a finite sum", sum));
  // A number that is rounded up to the sum belongs to the last sample whose weight is not 0.
  const auto last = std::ranges::lower_bound(sums, sum);
  constexpr std::uint64_t tag =
      // The letters "weights", which separate these random numbers from those of a permutation.
      0x77656967687473;
  Random random{seed, static_cast<std::uint64_t>(epoch), tag};
  std::vector<std::int64_t> order(weights.size());
  for (std::int64_t& index : order)
    index = std::min(std::upper_bound(sums.begin(), sums.end(), random.uniform(0, sum)), last) - sums.begin();
  return order;
}

std::vector<double> sample_weights(std::span<const std::int64_t> labels,
                                   std::span<const double> class_weights) {
  std::vector<double> counts(class_weights.size());
  for (const std::int64_t label : labels) ++counts.at(static_cast<std::size_t>(label));
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] == 0 && class_weights[i] > 0)
      throw UserError(
          fmt::format("class {} is to be drawn and has no sample; give it the weight 0, or samples", i));
  std::vector<double> weights;
  for (const std::int64_t label : labels) {
    const auto of_class = static_cast<std::size_t>(label);
    weights.push_back(class_weights[of_class] / counts[of_class]);
  }
  return weights;
}

void BatchPlan::check() const {
  require_positive(samples, "samples");
  require_positive(batch_size, "samples in a batch");
  require_positive(ranks, "ranks");
  require_positive(micro_batches, "micro-batches");
  if (micro_batches > std::max(batch_size, most_micro_batches))
    throw UserError(
        fmt::format("the number of micro-batches is {} and a batch has {} samples; give at most one "
                    "for each",
                    micro_batches, batch_size));
}

std::int64_t BatchPlan::steps_per_epoch() const {
  return samples / batch_size + (samples % batch_size != 0 ? 1 : 0);
}

Slice BatchPlan::global_batch(std::int64_t step) const {
  const std::int64_t first = step * batch_size;
  return {first, std::min(batch_size, samples - first)};
}

Slice BatchPlan::rank_share(std::int64_t step, std::int64_t rank) const {
  return split_evenly(global_batch(step), ranks, rank);
}

Slice BatchPlan::micro_batch(std::int64_t step, std::int64_t rank, std::int64_t micro) const {
  return split_evenly(rank_share(step, rank), micro_batches, micro);
}

std::vector<std::int64_t> BatchPlan::micro_batch_sizes(std::int64_t rank) const {
  std::set<std::int64_t> sizes;
  // Only the last step differs from the others.
  for (const std::int64_t step : {std::int64_t{0}, steps_per_epoch() - 1})
    for (const std::int64_t micro :
         // The first micro-batch is the largest, and the last one the smallest.
         {std::int64_t{0}, micro_batches - 1})
      sizes.insert(micro_batch(step, rank, micro).count);
  return {sizes.begin(), sizes.end()};
}

}  // namespace plexaura
