#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "training/data/tables/standardise.h"
#include "training/files/safetensors.h"

namespace plexaura {

// What has to be known of the data that a model was trained on, to use it on other samples.
struct TrainedData {
  std::vector<std::string> classes;
  std::vector<std::string> columns = {};  // of a table: names of the features, in the order of a sample
  Standardisation scale = {};  // of each column; mean 0 and deviation 1 where columns are taken as they are
};

bool operator==(const TrainedData& a, const TrainedData& b);

// In the metadata of weights, exactly: "data.class 0" is a name, "data.column 0" is "MEAN DEVIATION NAME".
Metadata to_metadata(const TrainedData& data);
// Empty for weights that do not say it. `path` is named in the UserError for what cannot be read.
std::optional<TrainedData> trained_data_in(const Metadata& metadata, const std::filesystem::path& path);

}  // namespace plexaura
