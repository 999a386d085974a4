#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/data/trained_data.h"
#include "app/predict.h"
#include "core/ops/normalise_image.h"
#include "core/params/placement.h"
#include "distributed/strategies/strategies.h"
#include "models/config/config.h"
#include "training/data/dataset.h"
#include "training/loop/trainer.h"

namespace plexaura {

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

// What data.format may be.
const std::vector<std::string>& data_formats();

// Opens what the section `data` names. Every key is read, and described in docs/configuration.md. Throws
// UserError with file and line, or naming the data's own file.
// `trained`: of a model that is used and not trained. A table is then read as that model was taught: its columns,
// their scale, its classes; and there need be no row to train on.
RunData open_data(const Config& config, const std::optional<TrainedData>& trained = {});

// What happens to the others when a rank dies, where the MPI outlives ranks.
enum class OnLoss : std::uint8_t {
  end,   // they end, too
  drop,  // they share out the data anew, and go on
  exact  // they compute its part of each step, and go on to the same bits
};

struct RunOptions {
  ArenaTypes types = {};  // training.precision
  StrategyOptions strategy = {};
  std::string algorithm;       // of the sums that the strategy makes
  bool finds_buckets = false;  // trainer.bucket_bytes is where no other size is found to be faster
  // Steps, where processors are of several kinds and the strategy does not align them.
  std::int64_t rebroadcast_every = 0;
  OnLoss on_loss = OnLoss::end;
  Tuning tuning = Tuning::cached;
  std::vector<std::string> freeze;  // patterns of parameters that are not trained
  TrainerOptions trainer;
};

// Reads the sections `training`, `distributed` and `output`. `samples` of the training set, for schedules
// that know the whole run; 0 where none is open.
RunOptions read_options(const Config& config, std::int64_t samples, int ranks);

// What is needed before the rest is read: the folder of checkpoints, empty for none.
std::filesystem::path read_output_folder(const Section& output);

}  // namespace plexaura
