#pragma once

#include <string>

#include "models/config/config.h"
#include "training/data/tables/csv.h"

namespace plexaura {

// Throws UserError where the labels are numbers that are nearly all different.
void check_label_column(const Section& data, const CsvDataset& table);

// What to do if a class has too few samples: `otherwise`, or to name another column where nearly each row is a class of
// its own.
std::string remedy_for_classes(const Dataset& samples, std::string_view otherwise);

}  // namespace plexaura
