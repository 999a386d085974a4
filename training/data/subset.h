#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "training/data/dataset.h"

namespace plexaura {

// Some samples of another dataset, in a given order. Samples are augmented as in the other dataset.
// Thread-safe.
class SubsetDataset final : public Dataset {
 public:
  // Throws UserError for an index that the other dataset does not have.
  SubsetDataset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices);

  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  bool in_memory() const override { return whole_->in_memory(); }
  Shape sample_shape() const override { return whole_->sample_shape(); }
  DType sample_dtype() const override { return whole_->sample_dtype(); }
  const std::vector<std::string>& class_names() const override { return whole_->class_names(); }
  std::int64_t label(std::int64_t index) const override { return whole_->label(in_whole(index)); }
  void read_sample(std::int64_t index, const SampleContext& context, std::span<std::byte> sample,
                   std::int64_t& label) const override {
    whole_->read_sample(in_whole(index), context, sample, label);
  }

 private:
  std::int64_t in_whole(std::int64_t index) const { return indices_[static_cast<std::size_t>(index)]; }

  std::shared_ptr<const Dataset> whole_;
  std::vector<std::int64_t> indices_;
};

// Returns the indices of the labels 0 … size - 1, shuffled by `seed`, in an order in which every contiguous
// range contains each class in nearly the same share as the whole. The functions below cut this order. All of
// them are pure, give the same result on every platform, and return indices in ascending order within a part.
// No part repeats an index, and the parts of a split or of folds have each index once.
std::vector<std::int64_t> stratified_order(std::span<const std::int64_t> labels, std::uint64_t seed);

// Returns one part for each fraction. Throws UserError unless the fractions are not negative and sum to 1.
std::vector<std::vector<std::int64_t>> stratified_split(std::span<const std::int64_t> labels,
                                                        std::span<const double> fractions,
                                                        std::uint64_t seed);

// Returns `folds` parts, as even as possible. Throws UserError unless there are at least 2 folds and at least
// as many samples as folds.
std::vector<std::vector<std::int64_t>> stratified_folds(std::span<const std::int64_t> labels,
                                                        std::int64_t folds, std::uint64_t seed);

// Returns all indices except those of one fold: the training set while that fold is the validation set.
std::vector<std::int64_t> without_fold(std::span<const std::vector<std::int64_t>> folds, std::int64_t fold);

// Returns `count` of the indices, or all if there are fewer (`limit` in a configuration). Throws UserError
// for a count below 1.
std::vector<std::int64_t> stratified_limit(std::span<const std::int64_t> labels, std::int64_t count,
                                           std::uint64_t seed);

// Returns a fraction of the indices, at least one (`use_fraction` in a configuration). Throws UserError
// unless 0 < fraction <= 1.
std::vector<std::int64_t> stratified_fraction(std::span<const std::int64_t> labels, double fraction,
                                              std::uint64_t seed);

}  // namespace plexaura
