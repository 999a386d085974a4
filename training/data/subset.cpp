#include "training/data/subset.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "training/data/sampler.h"

namespace plexaura {

namespace {

std::vector<std::int64_t> cut(const std::vector<std::int64_t>& order, std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> part(order.begin() + first, order.begin() + last);
  std::ranges::sort(part);
  return part;
}

std::int64_t share_of(double fraction, std::size_t count) {
  return std::clamp<std::int64_t>(std::llround(fraction * static_cast<double>(count)), 0,
                                  static_cast<std::int64_t>(count));
}

}  // namespace

SubsetDataset::SubsetDataset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices)
    : whole_(std::move(whole)), indices_(std::move(indices)) {
  for (const std::int64_t index : indices_)
    if (index < 0 || index >= whole_->size())
      throw UserError(
          fmt::format("a subset names sample {} of a dataset of {}; indices go from 0 to one less", index,
                      whole_->size()));
}

std::vector<std::int64_t> stratified_order(std::span<const std::int64_t> labels, std::uint64_t seed) {
  std::map<std::int64_t, std::vector<std::int64_t>> classes;
  for (const std::int64_t index : epoch_order(static_cast<std::int64_t>(labels.size()), true, seed, 0))
    classes[labels[static_cast<std::size_t>(index)]].push_back(index);

  // Orders the samples by a position in [0, 1). The samples of each class are spread evenly over this range.
  std::vector<std::tuple<double, std::int64_t, std::int64_t>> spread;
  for (const auto& [label, members] : classes)
    for (std::size_t i = 0; i < members.size(); ++i)
      spread.emplace_back((static_cast<double>(i) + 0.5) / static_cast<double>(members.size()), label,
                          members[i]);
  std::ranges::sort(spread);

  std::vector<std::int64_t> order;
  for (const auto& entry : spread) order.push_back(std::get<2>(entry));
  return order;
}

std::vector<std::vector<std::int64_t>> stratified_split(std::span<const std::int64_t> labels,
                                                        std::span<const double> fractions,
                                                        std::uint64_t seed) {
  const double sum = std::accumulate(fractions.begin(), fractions.end(), 0.0);
  if (std::ranges::any_of(fractions, [](double f) { return !(f >= 0); }) || !(std::abs(sum - 1) < 1e-6))
    throw UserError(
        fmt::format("the fractions of a split sum to {}; give fractions of 0 or more that sum to 1", sum));
  const std::vector<std::int64_t> order = stratified_order(labels, seed);
  std::vector<std::vector<std::int64_t>> parts;
  double covered = 0;
  std::int64_t first = 0;
  for (const double fraction : fractions) {
    covered += fraction;
    const std::int64_t last = std::max(first, share_of(covered, order.size()));
    parts.push_back(cut(order, first, last));
    first = last;
  }
  return parts;
}

std::vector<std::vector<std::int64_t>> stratified_folds(std::span<const std::int64_t> labels,
                                                        std::int64_t folds, std::uint64_t seed) {
  const auto count = static_cast<std::int64_t>(labels.size());
  if (folds < 2 || folds > count)
    throw UserError(
        fmt::format("{} folds of {} samples; give 2 folds or more, and no more than samples", folds, count));
  const std::vector<std::int64_t> order = stratified_order(labels, seed);
  std::vector<std::vector<std::int64_t>> parts;
  for (std::int64_t fold = 0; fold < folds; ++fold) {
    const Slice slice = split_evenly({0, count}, folds, fold);
    parts.push_back(cut(order, slice.first, slice.first + slice.count));
  }
  return parts;
}

std::vector<std::int64_t> without_fold(std::span<const std::vector<std::int64_t>> folds, std::int64_t fold) {
  std::vector<std::int64_t> rest;
  for (std::size_t i = 0; i < folds.size(); ++i)
    if (static_cast<std::int64_t>(i) != fold) rest.insert(rest.end(), folds[i].begin(), folds[i].end());
  std::ranges::sort(rest);
  return rest;
}

std::vector<std::int64_t> stratified_limit(std::span<const std::int64_t> labels, std::int64_t count,
                                           std::uint64_t seed) {
  if (count < 1) throw UserError(fmt::format("the limit of samples is {}; give 1 or more", count));
  return cut(stratified_order(labels, seed), 0, std::min(count, static_cast<std::int64_t>(labels.size())));
}

std::vector<std::int64_t> stratified_fraction(std::span<const std::int64_t> labels, double fraction,
                                              std::uint64_t seed) {
  if (!(fraction > 0 && fraction <= 1))
    throw UserError(
        fmt::format("the fraction of samples to use is {}; give more than 0 and at most 1", fraction));
  return stratified_limit(labels, std::max<std::int64_t>(1, share_of(fraction, labels.size())), seed);
}

}  // namespace plexaura
