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
#include "training/data/sample_source.h"
#include "training/data/stream_source.h"

namespace plexaura {

// Samples without labels, prepared like validation samples.
struct NamedSamples {
  std::vector<std::string> names;
  Tensor samples;  // [names, ...]: float32, or uint8 for images
};

// Reads a file that was given to --predict: an image, an IDX file of images, or a table with a sample in each row.
// Throws UserError.
using ReadSamples = std::function<NamedSamples(const std::string& file)>;

// The data of a run.
struct RunData {
  std::shared_ptr<const SampleSource> train;
  std::shared_ptr<const SampleSource> validation;
  std::string description;  // "400 samples of 5 classes, 125 for validation, from ..."
  std::string
      outputs;  // classes of `train`: "'a' (300), 'b' (100)"; or targets: "'height', 'width'"; or tokens
  std::string preparation;   // how files become samples: crops, scales, normalisation
  ReadSamples read_samples;  // reads the files of --predict; empty if the format has none
  // The stream to train on instead of `train`, with the same fields; null: there is none. `steps_per_epoch` and
  // `shuffle_buffer` are those of TrainerOptions.
  std::shared_ptr<const StreamSource> stream = {};
  std::int64_t steps_per_epoch = 0;
  std::int64_t shuffle_buffer = 1;
  // The weights with which training samples are drawn; null: each comes once in an epoch.
  std::shared_ptr<const std::vector<double>> sample_weights = {};
  PixelScale pixels = {};  // how the model normalises samples of bytes
  // A hash of what a resumed run may not change: the classes, the labels or images, and the validation
  // samples of a table.
  std::uint64_t origin = 0;
  std::optional<std::uint64_t> older_origin = {};  // see TrainerOptions
  // True if there are training samples, and the validation samples were taken from the same table, text, array, set of
  // shards or folder of images.
  bool is_cut = false;
  // True if samples are scaled by statistics that were measured on `train` when it was opened.
  bool is_measured = false;
  TrainedData trained = {};
  Settings keys = {};  // values of the keys of the section `data`

  // Returns a word for the outputs of a model: "classes", "targets" or "tokens".
  const char* kind_of_outputs() const {
    if (trained.vocabulary) return "tokens";
    return trained.targets.empty() ? "classes" : "targets";
  }
  // Returns the number of outputs of a model.
  std::int64_t output_count() const {
    if (trained.vocabulary) return trained.vocabulary->size();
    return std::ssize(trained.classes) + std::ssize(trained.targets);
  }
  // Returns the type of one sample of `train`.
  TensorType sample() const { return train->fields().front().type; }
};

}  // namespace plexaura
