#include "app/data/open_data.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <optional>
#include <system_error>

#include "app/data/class_weights.h"
#include "app/data/data_options.h"
#include "app/data/data_pair.h"
#include "app/data/describe_data.h"
#include "app/data/image_layout.h"
#include "app/data/open_arrays.h"
#include "app/data/open_image_pairs.h"
#include "app/data/open_pixels.h"
#include "app/data/open_shards.h"
#include "app/data/open_table.h"
#include "app/data/prediction_data.h"
#include "app/data/split_data.h"
#include "app/data/text_data.h"
#include "models/config/yaml_tree.h"
#include "training/data/images/image_folder.h"
#include "training/data/mixed_samples.h"
#include "training/data/noisy_samples.h"
#include "training/data/subset.h"
#include "training/data/tables/standardise.h"
#include "training/data/tables/target_samples.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

// False for a file in a folder that cannot be read. The code that opens the file reports the reason.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Returns where the program looked for a relative path, and names a file with that name beside the YAML file.
std::string where_looked(const Section& data, const fs::path& path) {
  if (path.is_absolute()) return "";
  std::error_code error;
  std::string text = fmt::format(" in {}", fs::current_path(error).string());
  const fs::path beside = fs::path(data.position().file).parent_path() / path.filename();
  if (is_there(beside)) text += fmt::format(", but {} does", beside.string());
  return text;
}

// Checks that a table, an npz file and an HDF5 file are files, and that all other data, except for a text, is in a
// folder.
void require_kind(const Section& data, const std::string& format, const fs::path& path) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  const bool is_one_file = format == "csv" || format == "npz" || format == "hdf5";
  if (is_one_file && is_folder)
    throw data.error("path", fmt::format("'{}' is a folder and data.format {} reads {}; name the file",
                                         path.string(), format, format == "csv" ? "a table" : "one file"));
  if (!is_one_file && format != "text" && !is_folder)
    throw data.error("path", fmt::format("'{}' is not a folder, but data.format {} reads a folder; name "
                                         "the folder that contains the files",
                                         path.string(), format));
}

// Throws if there is only one class, because every prediction would be right.
void require_classes(const Section& data, const DataOptions& options, const std::vector<std::string>& names) {
  if (names.size() > 1) return;
  const std::string& format = options.format();
  const fs::path& path = options.path;
  throw data.error(
      "path",
      fmt::format("'{}' has samples of only one class, '{}', but a model needs two or more; {}",
                  path.string(), names.front(),
                  format == "csv" ? "add the others, or name the column of the labels in data.label"
                  : format == "image_folder"
                      ? remedy_for_one_class((options.divides_images ? path : path / "train") / names.front())
                      : "add samples of the others"));
}

void require_path(const Section& data, const fs::path& path) {
  if (path.empty())
    throw data.error("path", "is empty; name the data's place, for example with --set data.path=...");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status)) return;
  if (status.type() != fs::file_type::not_found)
    throw data.error("path", fmt::format("'{}' cannot be opened: {}; check the path and its permissions",
                                         path.string(), error.message()));
  throw data.error(
      "path",
      fmt::format("'{}' does not exist{}; name the data's place, for example with --set data.path=...",
                  path.string(), where_looked(data, path)));
}

// Throws unless arrays or shards have the columns and targets of the training. The columns of shards have names, and the
// columns of arrays have none.
void require_same_rows(const Section& data, const DataOptions& options, const UnsplitSamples& samples,
                       const TrainedData& trained) {
  if (samples.columns.size() == trained.columns.size() && samples.targets.size() == trained.targets.size()) {
    if (options.format() != "shards" ||
        (samples.columns == trained.columns && samples.targets == trained.targets))
      return;
    const bool in_columns = samples.columns != trained.columns;
    const std::vector<std::string>& here = in_columns ? samples.columns : samples.targets;
    const std::vector<std::string>& there = in_columns ? trained.columns : trained.targets;
    const auto [found, wanted] = std::ranges::mismatch(here, there);
    throw data.error("path",
                     fmt::format("has the column '{}' where the training had '{}'; pack the columns in "
                                 "the order of the training",
                                 *found, *wanted));
  }
  throw data.error("path",
                   fmt::format("has samples with {} columns and {} targets, and the weights are of a model "
                               "of {} columns and {} targets; name arrays like those of its training",
                               samples.columns.size(), samples.targets.size(), trained.columns.size(),
                               trained.targets.size()));
}

// Returns a hash of all values of rows, without those that cannot be read and may be skipped.
std::uint64_t hash_of_rows(const Dataset& rows, OnError on_error) {
  std::vector<std::byte> row(static_cast<std::size_t>(rows.sample_shape().elements()) *
                             size_of(rows.sample_dtype()));
  std::uint64_t hash = fnv_start;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    if (read_values(rows, i, row, on_error)) hash = fnv(row, hash);
  }
  return hash;
}

// Splits and scales samples of arrays or shards. `source` is a hash of their contents. If it is 0, the rows are hashed
// here.
DataPair prepare_samples(const Section& data, const DataOptions& options, const UnsplitSamples& raw,
                         const std::optional<TrainedData>& trained, std::uint64_t source) {
  if (trained) require_same_rows(data, options, raw, *trained);
  DataPair pair = split_and_scale(data, options, raw, trained);
  if (source == 0 && !raw.columns.empty()) source = hash_of_rows(*raw.samples, options.on_error);
  pair.origin = fnv(to_string(raw.samples->sample_shape()), fnv(std::to_string(source), pair.origin));
  if (raw.samples->sample_dtype() != DType::uint8) return pair;
  pair.pixels = pixel_scale_of(options.pixels, data);
  pair.preparation = normalisation_text(pair.pixels);
  return pair;
}

// The hash changes if an image moves to another class or is renamed.
std::uint64_t hash_of(const ImageFolderDataset& images) {
  std::uint64_t hash = fnv_start;
  for (std::int64_t i = 0; i < images.size(); ++i) hash = fnv(images.name(i) + '\n', hash);
  return hash;
}

void describe_images(const Section& data, const DataOptions& options, DataPair& pair) {
  const ImageFolderOptions centred = without_augmentation(options.images);
  pair.pixels = pixel_scale_of(options.pixels, data);
  pair.preparation = preparation_text(options.images, centred, pair.pixels);
  pair.read_samples = image_reader(centred);
}

// Opens a folder that has a folder for each class, and divides its images.
DataPair divide_image_folder(const Section& data, const DataOptions& options, bool trains) {
  refuse_parts(data, options.path);
  const auto whole = std::make_shared<ImageFolderDataset>(options.path, options.images);
  const auto centred = std::make_shared<ImageFolderDataset>(*whole, without_augmentation(options.images));
  DataPair pair = divide_samples(data, options, whole, centred, trains);
  pair.origin = fnv(std::to_string(hash_of(*whole)), pair.origin);
  pair.is_cut = pair.train->size() > 0;
  pair.ignored = whole->ignored();
  describe_images(data, options, pair);
  return pair;
}

DataPair open_image_folder(const Section& data, const DataOptions& options) {
  const fs::path& path = options.path;
  const ImageFolderOptions centred = without_augmentation(options.images);
  require_parts(data, path, options.validates());
  const auto train = std::make_shared<ImageFolderDataset>(path / "train", options.images);
  DataPair pair{
      .train = train, .origin = hash_of(*train), .older_origin = fnv_start, .ignored = train->ignored()};
  describe_images(data, options, pair);
  if (!options.validates()) return pair;
  const auto validation = std::make_shared<ImageFolderDataset>(path / "val", centred);
  check_same_classes(*train, (path / "train").string(), *validation, (path / "val").string());
  pair.validation = validation;
  pair.ignored += validation->ignored();
  return pair;
}

DataPair open_shard_files(const Section& data, const DataOptions& options, Task task,
                          const std::optional<TrainedData>& trained) {
  OpenedShards opened = open_shards(data, options, task, trained);
  if (!opened.images.train) return prepare_samples(data, options, opened.samples, trained, opened.identity);
  DataPair& pair = opened.images;
  pair.origin = opened.identity;
  pair.preparation = preparation_text(options.images, without_augmentation(options.images), pair.pixels);
  return std::move(pair);
}

// Continues a hash with the format and the names of the classes or targets.
std::uint64_t with_classes(const std::string& format, const std::vector<std::string>& names,
                           std::uint64_t hash) {
  hash = fnv(format, hash);
  for (const std::string& name : names) hash = fnv(name + '\n', hash);
  return hash;
}

// Keeps only the training samples with these indices.
void keep_part(const Section& data, const char* key, DatasetPtr& train, std::vector<std::int64_t> indices) {
  const DatasetPtr part = subset_of(train, std::move(indices));
  require_each_class(data, key, data.text(key), *part, *train, "give a larger number");
  train = part;
}

// Returns the samples as a model reads them.
std::shared_ptr<const SampleSource> as_source(DatasetPtr samples, const DataOptions& options,
                                              const TrainedData& trained) {
  if (options.noise > 0) return std::make_shared<NoisySamples>(std::move(samples), options.noise);
  if (trained.targets.empty()) return samples;
  return std::make_shared<TargetSamples>(std::move(samples), std::ssize(trained.targets));
}

// Throws for keys of mixing if arrays or shards contain other samples than images of bytes.
void require_images_to_mix(const Section& data, const Dataset& samples) {
  constexpr std::size_t image_axes = 3;
  if (samples.sample_dtype() == DType::uint8 && samples.sample_shape().rank() == image_axes) return;
  data.refuse({"mixup_alpha", "cutmix_alpha"}, "the samples in data.path are not images of bytes");
}

// Returns samples with the fields of mixed samples.
std::shared_ptr<const SampleSource> as_mixed(DatasetPtr samples, const MixOptions& options) {
  return std::make_shared<MixedSamples>(std::move(samples), options);
}

std::string mixing_text(const MixOptions& mix) {
  const bool both = mix.mixup_alpha > 0 && mix.cutmix_alpha > 0;
  return fmt::format("{}{}{} of the training images after: ",
                     mix.mixup_alpha > 0 ? fmt::format("MixUp({:g})", mix.mixup_alpha) : "",
                     both ? " or " : "",
                     mix.cutmix_alpha > 0 ? fmt::format("CutMix({:g})", mix.cutmix_alpha) : "");
}

std::string target_names(const std::vector<std::string>& targets) {
  std::vector<std::string> names;
  for (const std::string& name : targets) names.push_back(quoted_for_error(name));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Lets a run train on the rows of the command data.stream. The table still names and scales the columns.
void add_stream(const DataOptions& options, Task task, RunData& run) {
  const StreamKeys& keys = options.stream;
  run.stream = table_stream(options, task, run.trained);
  run.steps_per_epoch = keys.steps_per_epoch;
  run.shuffle_buffer = keys.shuffle_buffer;
  run.description =
      fmt::format("{} in an epoch on the rows of the command `{}`, prepared as {}",
                  counted(keys.steps_per_epoch, "step", "steps"), *keys.command, run.description);
  run.origin = fnv(fmt::format("stream {} {}", keys.shuffle_buffer, run.stream->is_divided()), run.origin);
  run.older_origin.reset();
}

// Returns the keys of the section that were read so far.
Settings keys_of_data(const Config& config) {
  Settings keys = config.values();
  std::erase_if(keys, [](const auto& key) { return !key.first.starts_with("data."); });
  return keys;
}

}  // namespace

RunData open_data(const Config& config, const std::optional<TrainedData>& trained) {
  return open_data(config, trained, trained ? DataUse::evaluate : DataUse::train);
}

RunData open_data(const Config& config, const std::optional<TrainedData>& trained, DataUse use) {
  const Section data = config.section("data");
  const Section model = config.section("model");
  const Task task = read_task(model);
  const DataOptions options = read_data_options(data, use, task);
  const std::string& format = options.format();
  const fs::path& path = options.path;
  require_path(data, path);
  require_kind(data, format, path);
  if (format == "text") {
    RunData text = open_text(data, options, trained, use);
    text.keys = keys_of_data(config);
    return text;
  }
  if (!options.target_folder.empty()) {
    RunData pairs = open_image_pairs(data, model, options, trained);
    pairs.keys = keys_of_data(config);
    return pairs;
  }
  DataPair pair = format == "csv" ? open_table(data, options, task, trained)
                  : options.has_arrays()
                      ? prepare_samples(data, options, open_arrays(data, options, task, trained), trained, 0)
                  : format == "shards"     ? open_shard_files(data, options, task, trained)
                  : format == "idx"        ? open_idx(data, options)
                  : format == "cifar"      ? open_cifar(data, options)
                  : options.divides_images ? divide_image_folder(data, options, !trained)
                                           : open_image_folder(data, options);
  require_images_to_mix(data, *pair.train);
  const bool has_targets = !pair.trained.targets.empty();
  if (!has_targets) {
    pair.trained.classes = pair.train->class_names();
    if (task != Task::reconstruction) require_classes(data, options, pair.trained.classes);
  }
  const std::vector<std::string>& outputs = has_targets ? pair.trained.targets : pair.trained.classes;
  pair.origin = with_classes(format, outputs, pair.origin);
  if (pair.older_origin) pair.older_origin = with_classes(format, outputs, *pair.older_origin);
  if (options.use_fraction)
    keep_part(data, "use_fraction", pair.train,
              stratified_fraction(labels_of(*pair.train), *options.use_fraction, 1));
  if (options.limit)
    keep_part(data, "limit", pair.train, stratified_limit(labels_of(*pair.train), *options.limit, 1));
  std::shared_ptr<const std::vector<double>> weights;
  if (options.sampling != "once") {
    if (use == DataUse::train) weights = drawing_weights(data, options, *pair.train);
    pair.origin = fnv(fmt::format("sampling {} {}", options.sampling, options.sampling_weights), pair.origin);
    pair.older_origin.reset();
  }
  if (!has_targets && balances_classes(model))
    pair.trained.class_weights = trained ? trained->class_weights : balanced_weights(model, *pair.train);
  if (!options.validates())
    pair.validation = subset_of(pair.train, {});
  else if (options.validation_limit)
    pair.validation = subset_of(pair.validation,
                                stratified_limit(labels_of(*pair.validation), *options.validation_limit, 1));
  if (options.noise > 0) pair.preparation += fmt::format("; then noise with deviation {:g}", options.noise);
  const bool mixes = options.mix.mixes() && use == DataUse::train;
  const std::string description = fmt::format(
      "{} of {}, {} for validation, {} from {}{}", counted(pair.train->size(), "sample", "samples"),
      has_targets ? counted(std::ssize(outputs), "target", "targets")
                  : counted(std::ssize(outputs), "class", "classes"),
      pair.validation->size(), format, path.string(), ignored_text(pair.ignored));
  RunData run{
      .train = mixes ? as_mixed(pair.train, options.mix) : as_source(pair.train, options, pair.trained),
      .validation = mixes ? as_mixed(pair.validation, {}) : as_source(pair.validation, options, pair.trained),
      .description = description,
      .outputs = has_targets ? target_names(outputs) : classes_text(*pair.train),
      .preparation = mixes ? mixing_text(options.mix) + pair.preparation : pair.preparation,
      .read_samples = pair.read_samples,
      .sample_weights = weights,
      .pixels = pair.pixels,
      .origin = pair.origin,
      .older_origin = pair.older_origin,
      .is_cut = pair.is_cut,
      .is_measured = pair.is_measured,
      .trained = pair.trained,
      .keys = keys_of_data(config)};
  if (options.stream.command && use == DataUse::train) add_stream(options, task, run);
  return run;
}

}  // namespace plexaura
