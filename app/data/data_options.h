#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/config/keys.h"
#include "models/zoo/model.h"
#include "models/zoo/pixel_scale.h"
#include "training/data/idx.h"
#include "training/data/images/cifar.h"
#include "training/data/images/image_folder.h"
#include "training/data/mixed_samples.h"
#include "training/data/tables/csv.h"
#include "training/data/text/vocabulary.h"

namespace plexaura {

// The names of arrays, which are files NAME.npy in a folder, members of an npz file, or datasets of an HDF5 file.
struct ArrayNames {
  std::string samples = "x_train";
  std::string labels = "y_train";
  std::optional<std::string> validation_samples = {};
  std::optional<std::string> validation_labels = {};
};

// The options of a text.
struct TextOptions {
  TokenKind tokens = TokenKind::characters;
  std::int64_t sequence_length = 0;
  std::int64_t stride = 0;
  std::int64_t minimum_count = 2;
  std::string extension = ".txt";
  std::filesystem::path validation_path = {};  // empty: the end of each file is for validation
  double validation_share = 0.1;
};

// The options of a stream of rows, which a command prints.
struct StreamKeys {
  std::optional<std::string> command = {};
  std::int64_t steps_per_epoch = 0;
  std::int64_t shuffle_buffer = 1;
};

// The options of the section `data`. Those for reading samples in training are in TrainerOptions.
struct DataOptions {
  PixelOptions pixels = {};  // includes the format
  std::filesystem::path path = {};
  std::optional<double> use_fraction = {};
  std::optional<std::int64_t> limit = {};
  OnError on_error = OnError::fail;  // used while the data is opened; the trainer has one of its own
  std::string sampling = "once";
  std::vector<double> sampling_weights = {};
  std::optional<std::int64_t> validation_limit = {};
  // Options of tables.
  CsvOptions csv = {};  // completed by read_data_options()
  std::string delimiter = ",";
  std::optional<std::string> label = {};
  std::optional<std::vector<std::string>> targets = {};
  std::vector<std::string> categories = {};  // columns of words
  std::vector<std::string> ignored = {};     // columns that are not read
  StreamKeys stream = {};
  bool standardise = true;
  bool standardise_targets = true;
  double validation_share = 0.2;
  std::optional<std::int64_t> folds = {};
  std::int64_t fold = 0;
  bool divides_images = false;  // true if an image_folder is to be divided by folds or by a share
  std::int64_t split_seed = 1;
  TextOptions text = {};
  // Options of images.
  IdxOptions idx = {};
  ImageFolderOptions images = {.augment = true};
  MixOptions mix = {};
  double noise = 0;                               // see NoisySamples; 0: none
  std::vector<Section> augmentation = {};         // read by read_augmentation()
  std::filesystem::path target_folder = {};       // empty: images have no targets of their own
  std::optional<std::int64_t> mask_classes = {};  // number of classes of the pixels of masks
  CifarLabels cifar_labels = CifarLabels::fine;
  // Options of arrays.
  ArrayNames arrays = {};
  std::optional<std::string> channels = {};  // axis of the channels: first or last

  const std::string& format() const { return pixels.format; }
  bool has_arrays() const { return format() == "npy" || format() == "npz" || format() == "hdf5"; }
  bool validates() const { return validation_limit.value_or(1) > 0; }
};

// The purpose for which data is read: to train; to overfit, which is to train on samples that are the same in each
// epoch; to evaluate a trained model, for which all rows may be used; or to predict, for which the samples are in other
// files.
enum class DataUse : std::uint8_t { train, overfit, evaluate, predict };

constexpr bool trains(DataUse use) { return use == DataUse::train || use == DataUse::overfit; }

// Returns the keys of the section `data`, which set the options.
std::vector<Key> data_keys(DataOptions& options, DataUse use = DataUse::train);

// Returns the key about samples that cannot be read. The table of the trainer has it, too.
Key on_error_key(OnError& on_error);

// Reads the section `data`. For DataUse::overfit it checks the options for augmentation, mixing, noise and sampling,
// and then switches them off. Throws UserError if its keys do not fit the task.
DataOptions read_data_options(const Section& data, DataUse use, Task task);

}  // namespace plexaura
