#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "training/data/standardise.h"
#include "training/safetensors.h"

namespace plexaura {

// What a model that was trained on a table has to know to be used on another one.
struct TrainedTable {
  std::vector<std::string> columns;  // names of the features, in the order of a sample
  Standardisation scale;  // of each column; mean 0 and deviation 1 where columns are taken as they are
  std::vector<std::string> classes;
};

bool operator==(const TrainedTable& a, const TrainedTable& b);

// In the metadata of weights, exactly: "table.column 0" is "MEAN DEVIATION NAME", "table.class 0" a name.
Metadata to_metadata(const TrainedTable& table);
// Empty for weights that do not say it. `path` is named in the UserError for what cannot be read.
std::optional<TrainedTable> trained_table_in(const Metadata& metadata, const std::filesystem::path& path);

}  // namespace plexaura
