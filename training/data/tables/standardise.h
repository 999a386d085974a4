#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "training/data/dataset.h"

namespace plexaura {

// The mean and standard deviation of each value of a sample, over the samples of a dataset.
struct Standardisation {
  std::vector<float> mean;
  std::vector<float> stddev;  // 1 for a value that never changes
};

// Reads the values of a sample. With OnError::skip returns false for a sample that cannot be read; otherwise throws its
// UserError. Always throws LimitReached.
bool read_values(const Dataset& samples, std::int64_t index, std::span<std::byte> values, OnError on_error);

// Measures the training set; the result is used for training and validation sets. The standard deviation is that of the
// population (divided by the number of samples). Ignores values that are NaN, which stand for missing ones. Throws
// UserError for a value that is NaN in every sample, for an empty dataset, and for samples of another dtype than float32.
// OnError::skip leaves out samples that cannot be read.
Standardisation measure_standardisation(const Dataset& training_set, OnError on_error = OnError::fail);

// Another dataset with every value of a sample replaced by (value - mean) / stddev. With `fills_missing` NaN is
// replaced by 0, which stands for the mean; otherwise it stays, and reading the sample is an error. Thread-safe.
class StandardisedDataset final : public DatasetOf<float> {
 public:
  // Throws UserError if `standardisation` has another number of values than a sample, and for samples of another dtype
  // than float32.
  StandardisedDataset(std::shared_ptr<const Dataset> raw, Standardisation standardisation,
                      bool fills_missing = false);

  std::int64_t size() const override { return raw_->size(); }
  bool in_memory() const override { return raw_->in_memory(); }
  Shape sample_shape() const override { return raw_->sample_shape(); }
  const std::vector<std::string>& class_names() const override { return raw_->class_names(); }
  std::int64_t label(std::int64_t index) const override { return raw_->label(index); }
  void read(std::int64_t index, const SampleContext& context, std::span<float> sample,
            std::int64_t& label) const override;

 private:
  std::shared_ptr<const Dataset> raw_;
  Standardisation standardisation_;
  bool fills_missing_;
};

}  // namespace plexaura
