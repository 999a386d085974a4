#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/data/data_options.h"
#include "app/data/data_pair.h"

namespace plexaura {

// Returns `scale`, followed by the means and deviations of `after`.
Standardisation joined(Standardisation scale, const Standardisation& after);

// Returns the samples with these indices.
DatasetPtr subset_of(const DatasetPtr& whole, std::vector<std::int64_t> indices);

// Throws UserError if `part` has no samples of a class that `whole` has, or no samples at all. `value` is the value of
// the key that has chosen the part; `remedy` is the end of the sentence.
void require_each_class(const Section& data, const char* key, const std::string& value, const Dataset& part,
                        const Dataset& whole, std::string_view remedy);

// Divides samples into those to train on and those to validate on: by folds, one of which is for validation, or by a
// share. `whole` has all samples as a model is trained on them, and `unchanged` the same samples without augmentation.
// `trains` is true if the data is for training; otherwise all samples may be for validation. The origin of the
// result is a hash of the division and the labels.
DataPair divide_samples(const Section& data, const DataOptions& options, const DatasetPtr& whole,
                        const DatasetPtr& unchanged, bool trains);

// Splits the samples, unless they have a validation set, and scales rows. `trained` belongs to a trained model, which may
// be used on all rows. It is empty if a new model is trained.
DataPair split_and_scale(const Section& data, const DataOptions& options, const UnsplitSamples& raw,
                         const std::optional<TrainedData>& trained);

}  // namespace plexaura
