#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/data/trained_data.h"
#include "core/ops/normalise_image.h"
#include "core/tensor/tensor.h"
#include "models/config/config.h"
#include "training/checkpoints/weights.h"
#include "training/data/dataset.h"

namespace plexaura {

// Samples without labels, prepared as those of the validation data.
struct NamedSamples {
  std::vector<std::string> names;
  Tensor samples;  // [names, ...]: float32, or uint8 for images
};

// Reads a file that was named for --predict: an image, or a table with a sample in each row. Throws
// UserError.
using ReadSamples = std::function<NamedSamples(const std::string& file)>;

// The data of a run.
struct RunData {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation;
  std::string description;   // "400 samples of 5 classes, 125 for validation, from ..."
  std::string classes;       // "'a' (300), 'b' (100)": of `train`
  std::string preparation;   // how a sample is made of what the files hold: crops, scales, normalisation
  ReadSamples read_samples;  // for --predict; none for a format that it refuses
  PixelScale pixels = {};    // by which the model normalises samples that are bytes
  // Hash of what a run may not change when it goes on: the classes, the labels or images, and what is held out of a table.
  std::uint64_t origin = 0;
  std::optional<std::uint64_t> older_origin = {};  // see TrainerOptions
  // Of one table: what is held out of it is cut from what is trained on ...
  bool is_cut = false;
  // ... and samples are scaled by what was measured over those that are trained on.
  bool is_measured = false;
  TrainedData trained = {};
  Settings keys = {};  // of the section data, by which it was opened
};

}  // namespace plexaura
