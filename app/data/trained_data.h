#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "training/data/tables/standardise.h"
#include "training/data/text/vocabulary.h"
#include "training/files/safetensors.h"

namespace plexaura {

// The facts about a model's training data that are needed to use the model on other samples.
struct TrainedData {
  std::vector<std::string> classes;       // empty if there are targets or a text
  std::vector<std::string> columns = {};  // names of the features of rows, in the order of a sample
  // Scale of each column; mean 0 and deviation 1 if columns are not scaled.
  Standardisation scale = {};
  std::vector<std::string> targets =
      {};                             // without classes: names of the targets, in the order of the outputs
  Standardisation target_scale = {};  // scale of each target, as `scale` of each column
  std::vector<double> class_weights =
      {};  // weight of each class with model.class_weights balanced; otherwise empty
  std::optional<Vocabulary> vocabulary = {};  // vocabulary of a text; empty for other data
  // Names of the columns of words, whose words are among `columns`: see feature_of_word().
  std::vector<std::string> categories = {};
};

bool operator==(const TrainedData& a, const TrainedData& b);

// Converts to metadata of weights, without rounding: "data.class 0" is a name, "data.column 0" is "MEAN DEVIATION
// NAME", and so is "data.target 0". "data.category 0" is the name of a column of words. "data.class_weight 0" is a
// number, "data.tokens" the kind of the tokens of a text, and "data.token 0" is a token.
Metadata to_metadata(const TrainedData& data);
// Returns the TrainedData in the metadata of weights. Returns nothing if they do not contain it. Throws UserError, which
// names `path`, for entries that cannot be read.
std::optional<TrainedData> trained_data_in(const Metadata& metadata, const std::filesystem::path& path);

// For training that starts from the weights of a file. Throws UserError if the metadata of the file contain another
// vocabulary than those of the data, because the weights of the file then belong to other tokens.
void check_vocabulary(const Metadata& weights, const std::filesystem::path& path, const Metadata& data);

}  // namespace plexaura
