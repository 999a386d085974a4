#pragma once

#include <functional>
#include <string>

#include "models/config/config.h"
#include "training/data/tables/csv.h"

namespace plexaura {

// Throws UserError if the labels are probably the numbers of a regression: at least 10 different numbers for less than
// twice as many rows; or more than 20, some of them fractions, for less than ten times as many rows.
void check_label_column(const Section& data, const CsvDataset& table);

// Throws UserError unless the target of a sample is a label: 0 or 1. `place` returns the start of the error, such as
// "y.npy: sample 3".
void require_label(float target, const std::function<std::string()>& place);

// Throws UserError unless all targets of the table are labels: 0 or 1.
void check_target_labels(const Section& data, const CsvDataset& table);

// Returns what to do if a class has too few samples: `otherwise`, or, if there are 10 classes or more and less than two
// samples for each on average, to name another column.
std::string remedy_for_classes(const Dataset& samples, std::string_view otherwise);

}  // namespace plexaura
