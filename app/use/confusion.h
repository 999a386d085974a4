#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/zoo/model.h"

namespace plexaura {

// With more classes the matrix of confusions is not counted: no screen is wide enough to show it.
inline constexpr std::int64_t most_confused_classes = 20;

// Like builder_of(), for a classification, with a ValidationSums that counts how often each class was
// predicted for the samples of each class. The model must outlive the result.
ModelBuilder builder_with_confusion(const Model& model);

// Returns the counts as a table: a row for each class of the samples, a column for each predicted class.
//   counts: [classes, classes], the totals of the sums.
std::string confusion_text(std::span<const double> counts, const std::vector<std::string>& classes);

}  // namespace plexaura
