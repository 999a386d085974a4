#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/zoo/model.h"

namespace plexaura {

// The largest number of classes for which confusions are counted: no screen is wide enough for a larger
// matrix.
inline constexpr std::int64_t most_confused_classes = 20;

// Returns the builder of a classification as builder_of() does, with a ValidationSums that counts how often
// each class was predicted for the samples of each class. The model must outlive the result.
ModelBuilder builder_with_confusion(const Model& model);

// Returns the counts as a table: a row for each class of the samples, a column for each predicted class.
//   counts [classes, classes] are the totals of the sums.
std::string confusion_text(std::span<const double> counts, const std::vector<std::string>& classes);

}  // namespace plexaura
