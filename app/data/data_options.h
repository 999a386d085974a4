#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/config/keys.h"
#include "models/zoo/pixel_scale.h"
#include "training/data/idx.h"
#include "training/data/images/image_folder.h"
#include "training/data/tables/csv.h"

namespace plexaura {

// Holds what the section `data` says of the samples. TrainerOptions holds how they are read in training.
struct DataOptions {
  PixelOptions pixels = {};  // with the format
  std::filesystem::path path = {};
  std::optional<double> use_fraction = {};
  std::optional<std::int64_t> limit = {};
  std::optional<std::int64_t> validation_limit = {};
  // Of a table.
  CsvOptions csv = {};  // see read_csv_options()
  std::string delimiter = ",";
  std::optional<std::string> label = {};
  bool standardise = true;
  double validation_share = 0.2;
  std::optional<std::int64_t> folds = {};
  std::int64_t fold = 0;
  std::int64_t split_seed = 1;
  // Of images.
  IdxOptions idx = {};
  ImageFolderOptions images = {.augment = true};

  const std::string& format() const { return pixels.format; }
  bool validates() const { return validation_limit.value_or(1) > 0; }
};

// The data is read to train, or for a model that was trained before: to evaluate it, for which all rows may be used, or
// to predict, for which the samples are elsewhere.
enum class DataUse : std::uint8_t { train, evaluate, predict };

// The keys of the section `data` that fill the options.
std::vector<Key> data_keys(DataOptions& options, DataUse use = DataUse::train);

DataOptions read_data_options(const Section& data, DataUse use);

}  // namespace plexaura
