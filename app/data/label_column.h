#pragma once

#include <functional>
#include <string>

#include "models/config/config.h"
#include "training/data/tables/csv.h"

namespace plexaura {

// Throws UserError if the labels are numbers that are nearly all different.
void check_label_column(const Section& data, const CsvDataset& table);

// Throws UserError unless the target of a sample is a label: 0 or 1. `place` returns the start of the error, such as
// "y.npy: sample 3".
void require_label(float target, const std::function<std::string()>& place);

// Throws UserError unless all targets of the table are labels: 0 or 1.
void check_target_labels(const Section& data, const CsvDataset& table);

// Returns what to do if a class has too few samples: `otherwise`, or, if nearly every row has a class of its
// own, to name another column.
std::string remedy_for_classes(const Dataset& samples, std::string_view otherwise);

}  // namespace plexaura
