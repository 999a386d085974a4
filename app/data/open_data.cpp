#include "app/data/open_data.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>

#include "app/data/class_weights.h"
#include "app/data/data_options.h"
#include "app/data/data_pair.h"
#include "app/data/describe_data.h"
#include "app/data/image_layout.h"
#include "app/data/label_column.h"
#include "app/data/open_arrays.h"
#include "app/data/open_pixels.h"
#include "app/data/open_shards.h"
#include "app/data/prediction_data.h"
#include "app/data/text_data.h"
#include "models/config/yaml_tree.h"
#include "training/data/images/image_folder.h"
#include "training/data/mixed_samples.h"
#include "training/data/subset.h"
#include "training/data/tables/csv.h"
#include "training/data/tables/standardise.h"
#include "training/data/tables/target_samples.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

DatasetPtr subset(const DatasetPtr& whole, std::vector<std::int64_t> indices) {
  return std::make_shared<SubsetDataset>(whole, std::move(indices));
}

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

// Checks that a table and an npz file are files, and other data a folder.
void require_kind(const Section& data, const std::string& format, const fs::path& path) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  const bool is_one_file = format == "csv" || format == "npz";
  if (is_one_file && is_folder)
    throw data.error("path", fmt::format("'{}' is a folder and data.format {} reads {}; name the file",
                                         path.string(), format, format == "csv" ? "a table" : "one file"));
  if (!is_one_file && format != "text" && !is_folder)
    throw data.error("path", fmt::format("'{}' is not a folder, but data.format {} reads a folder; name "
                                         "the folder that contains the files",
                                         path.string(), format));
}

// Throws if there is only one class, because every prediction would be right.
void require_classes(const Section& data, const std::string& format, const fs::path& path,
                     const std::vector<std::string>& names) {
  if (names.size() > 1) return;
  throw data.error(
      "path", fmt::format("'{}' has samples of only one class, '{}', but a model needs two or more; {}",
                          path.string(), names.front(),
                          format == "csv" ? "add the others, or name the column of the labels in data.label"
                          : format == "image_folder" ? remedy_for_one_class(path / "train" / names.front())
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

// Throws if a class has no samples to learn from. `value` is the value of the key that has chosen the part;
// `remedy` is the end of the sentence.
void require_each_class(const Section& data, const char* key, const std::string& value, const Dataset& part,
                        const Dataset& whole, std::string_view remedy) {
  const bool has_classes = whole.class_names().size() > 1;
  if (!has_classes && part.size() == 0)
    throw data.error(key, fmt::format("is {}, which leaves none of the {} samples to train on; {}", value,
                                      whole.size(), remedy));
  const std::vector<std::int64_t> labels = labels_of(part);
  const std::set<std::int64_t> left(labels.begin(), labels.end());
  for (const std::int64_t label : labels_of(whole))
    if (!left.contains(label))
      throw data.error(
          key,
          fmt::format("is {}, which leaves {} of the {} samples to train on and none of the class '{}'; {}",
                      value, part.size(), whole.size(), whole.class_names()[static_cast<std::size_t>(label)],
                      remedy_for_classes(whole, remedy)));
}

// Splits a table into training and validation samples: by folds, one of which is for validation, or by a
// share. `trains`: the data is for training. A trained model may be used on all rows.
DataPair split(const Section& data, const DataOptions& options, const DatasetPtr& whole, bool trains) {
  const auto seed = static_cast<std::uint64_t>(options.split_seed);
  const std::vector<std::int64_t> labels = labels_of(*whole);
  if (options.folds) {
    const std::int64_t count = *options.folds;
    if (count > whole->size())
      throw data.error("folds", fmt::format("is {} and there are {} samples; give at most one part a sample",
                                            count, whole->size()));
    const std::int64_t fold = options.fold;
    const auto folds = stratified_folds(labels, count, seed);
    const DatasetPtr train = subset(whole, without_fold(folds, fold));
    if (trains)
      require_each_class(data, "fold", std::to_string(fold), *train, *whole,
                         "give that class more samples, or leave it out of the table");
    return {train, subset(whole, folds[static_cast<std::size_t>(fold)]),
            fnv(fmt::format("fold {} of {}, seed {}", fold, count, seed), label_hash(*whole))};
  }
  const double share = options.validation_share;
  auto parts = stratified_split(labels, std::array{1 - share, share}, seed);
  const DatasetPtr train = subset(whole, std::move(parts[0]));
  if (trains)
    require_each_class(data, "validation_share", fmt::format("{}", share), *train, *whole,
                       "give a smaller share");
  return {train, subset(whole, std::move(parts[1])),
          fnv(fmt::format("share {}, seed {}", share, seed), label_hash(*whole))};
}

// Selects the columns and classes of a trained model.
void ask_for(const TrainedData& trained, CsvOptions& options) {
  if (options.header) options.features.assign(trained.columns.begin(), trained.columns.end());
  options.class_names = trained.classes;
}

void require_columns(const Section& data, const fs::path& path, const CsvDataset& table,
                     const TrainedData& trained) {
  if (table.feature_names().size() == trained.columns.size()) return;
  throw data.error("path",
                   fmt::format("'{}' has {} columns of features and the weights are of a model that takes "
                               "{}; name a table with those of its training",
                               path.string(), table.feature_names().size(), trained.columns.size()));
}

// Throws unless arrays or shards have the columns and targets of the training. Those of shards have names, and those of
// arrays have none.
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

// Returns mean 0 and deviation 1, for columns that are not scaled.
Standardisation no_scale(std::size_t columns) {
  return {std::vector<float>(columns, 0), std::vector<float>(columns, 1)};
}

// Returns the scale of the columns from `first` on.
Standardisation part_of(const Standardisation& scale, std::size_t first, std::size_t count) {
  const auto part = [&](const std::vector<float>& numbers) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(first);
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  return {part(scale.mean), part(scale.stddev)};
}

Standardisation joined(Standardisation scale, const Standardisation& after) {
  scale.mean.insert(scale.mean.end(), after.mean.begin(), after.mean.end());
  scale.stddev.insert(scale.stddev.end(), after.stddev.begin(), after.stddev.end());
  return scale;
}

// Measures the columns that are to be scaled.
void measure(const Dataset& train, const DataOptions& options, TrainedData& trained) {
  const std::size_t columns = trained.columns.size();
  const std::size_t targets = trained.targets.size();
  const Standardisation measured = measure_standardisation(train);
  if (options.standardise) trained.scale = part_of(measured, 0, columns);
  if (options.standardise_targets) trained.target_scale = part_of(measured, columns, targets);
}

std::string preparation_text(const DataOptions& options, bool has_columns, bool has_targets) {
  if (!has_columns) return "the numbers as they are";
  const bool of_columns = options.standardise;
  const bool of_targets = has_targets && options.standardise_targets;
  if (!of_columns && !of_targets) return "the columns as they are";
  const char* const which = !of_columns       ? "every target"
                            : of_targets      ? "every column and target"
                            : options.targets ? "every column, but no target,"
                                              : "every column";
  return fmt::format("{} less its mean, by its deviation, both of the training rows", which);
}

// Splits the samples, unless they have a validation set, and scales rows.
DataPair split_and_scale(const Section& data, const DataOptions& options, const UnsplitSamples& raw,
                         const std::optional<TrainedData>& trained) {
  DataPair pair = raw.validation
                      ? DataPair{raw.samples, raw.validation, fnv("arrays", label_hash(*raw.samples))}
                      : split(data, options, raw.samples, !trained);
  pair.is_cut = !raw.validation && pair.train->size() > 0;
  const bool has_columns = !raw.columns.empty();
  const bool has_targets = !raw.targets.empty();
  pair.preparation = preparation_text(options, has_columns, has_targets);
  pair.trained = trained ? *trained
                         : TrainedData{has_targets ? std::vector<std::string>{} : raw.samples->class_names(),
                                       raw.columns, no_scale(raw.columns.size()), raw.targets,
                                       no_scale(raw.targets.size())};
  if (has_columns && (options.standardise || (has_targets && options.standardise_targets))) {
    pair.is_measured = !trained;
    if (pair.is_measured) measure(*pair.train, options, pair.trained);
    const Standardisation scale = joined(pair.trained.scale, pair.trained.target_scale);
    const bool fills = options.csv.missing == MissingCells::mean;
    pair.train = std::make_shared<StandardisedDataset>(pair.train, scale, fills);
    pair.validation = std::make_shared<StandardisedDataset>(pair.validation, scale, fills);
  }
  return pair;
}

DataPair open_csv(const Section& data, const DataOptions& options, Task task,
                  const std::optional<TrainedData>& trained) {
  if (trained) require_table(data, options, *trained);
  CsvOptions csv = options.csv;
  if (trained) ask_for(*trained, csv);
  const auto table = std::make_shared<CsvDataset>(options.path, csv);
  if (trained)
    require_columns(data, options.path, *table, *trained);
  else if (csv.targets.empty())
    check_label_column(data, *table);
  if (task == Task::multi_label) check_target_labels(data, *table);
  DataPair pair = split_and_scale(
      data, options, {.samples = table, .columns = table->feature_names(), .targets = table->target_names()},
      trained);
  pair.origin = fnv(std::as_bytes(std::span(table->values())), pair.origin);
  if (table->dropped() > 0)
    pair.preparation +=
        fmt::format("; without {} that lack a cell", counted(table->dropped(), "row", "rows"));
  pair.read_samples = row_reader(csv, pair.trained, options.standardise);
  return pair;
}

// Returns a hash of all values of rows.
std::uint64_t hash_of_rows(const Dataset& rows) {
  std::vector<std::byte> row(static_cast<std::size_t>(rows.sample_shape().elements()) *
                             size_of(rows.sample_dtype()));
  std::uint64_t hash = fnv_start;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    std::int64_t label = 0;
    rows.read_sample(i, {}, row, label);
    hash = fnv(row, hash);
  }
  return hash;
}

// Splits and scales samples of arrays or shards. `source`: a hash of what they are; 0: rows are hashed here.
DataPair prepare_samples(const Section& data, const DataOptions& options, const UnsplitSamples& raw,
                         const std::optional<TrainedData>& trained, std::uint64_t source) {
  if (trained) require_same_rows(data, options, raw, *trained);
  DataPair pair = split_and_scale(data, options, raw, trained);
  if (source == 0 && !raw.columns.empty()) source = hash_of_rows(*raw.samples);
  pair.origin = fnv(to_string(raw.samples->sample_shape()), fnv(std::to_string(source), pair.origin));
  if (raw.samples->sample_dtype() != DType::uint8) return pair;
  pair.pixels = pixel_scale_of(options.pixels, data);
  pair.preparation = normalisation_text(pair.pixels);
  return pair;
}

std::string preparation_text(const ImageFolderOptions& train, const ImageFolderOptions& validation,
                             const PixelScale& pixels) {
  const std::int64_t side = validation.image_size;
  const std::string centre = fmt::format("shorter side scaled to {}, {}x{} from the centre",
                                         shorter_side_of(validation), side, side);
  const std::string random = fmt::format(
      "random crop of {:g} to 1 of the area, scaled to {}x{}{}; validation: ", train.min_crop_scale, side,
      side, train.horizontal_flip ? ", half of them flipped" : "");
  std::vector<std::string_view> names;
  for (const auto& operation : train.operations) names.push_back(operation->name());
  const std::string listed = fmt::format("{}; validation: ", fmt::join(names, ", "));
  return fmt::format("{}{}; {}",
                     !train.augment  ? ""
                     : names.empty() ? random
                                     : listed,
                     centre, normalisation_text(pixels));
}

// The hash changes if an image moves to another class or is renamed.
std::uint64_t hash_of(const ImageFolderDataset& images) {
  std::uint64_t hash = fnv_start;
  for (std::int64_t i = 0; i < images.size(); ++i) hash = fnv(images.name(i) + '\n', hash);
  return hash;
}

DataPair open_image_folder(const Section& data, const DataOptions& options) {
  const fs::path& path = options.path;
  const ImageFolderOptions centred = without_augmentation(options.images);
  require_parts(data, path, options.validates());
  const auto train = std::make_shared<ImageFolderDataset>(path / "train", options.images);
  DataPair pair{
      .train = train, .origin = hash_of(*train), .older_origin = fnv_start, .ignored = train->ignored()};
  pair.pixels = pixel_scale_of(options.pixels, data);
  pair.preparation = preparation_text(options.images, centred, pair.pixels);
  pair.read_samples = image_reader(centred);
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

// `names`: of the classes or targets.
std::uint64_t with_classes(const std::string& format, const std::vector<std::string>& names,
                           std::uint64_t hash) {
  hash = fnv(format, hash);
  for (const std::string& name : names) hash = fnv(name + '\n', hash);
  return hash;
}

// Keeps only these training samples.
void keep_part(const Section& data, const char* key, DatasetPtr& train, std::vector<std::int64_t> indices) {
  const DatasetPtr part = subset(train, std::move(indices));
  require_each_class(data, key, data.text(key), *part, *train, "give a larger number");
  train = part;
}

// Returns the samples as a model reads them.
std::shared_ptr<const SampleSource> as_source(DatasetPtr samples, const TrainedData& trained) {
  if (trained.targets.empty()) return samples;
  return std::make_shared<TargetSamples>(std::move(samples), std::ssize(trained.targets));
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
  DataPair pair = format == "csv" ? open_csv(data, options, task, trained)
                  : options.has_arrays()
                      ? prepare_samples(data, options, open_arrays(data, options, task, trained), trained, 0)
                  : format == "shards" ? open_shard_files(data, options, task, trained)
                  : format == "idx"    ? open_idx(data, options)
                  : format == "cifar"  ? open_cifar(data, options)
                                       : open_image_folder(data, options);
  const bool has_targets = !pair.trained.targets.empty();
  if (!has_targets) {
    pair.trained.classes = pair.train->class_names();
    if (task != Task::reconstruction) require_classes(data, format, path, pair.trained.classes);
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
    pair.validation = subset(pair.train, {});
  else if (options.validation_limit)
    pair.validation =
        subset(pair.validation, stratified_limit(labels_of(*pair.validation), *options.validation_limit, 1));
  const bool mixes = options.mix.mixes() && use == DataUse::train;
  const std::string description = fmt::format(
      "{} of {}, {} for validation, {} from {}{}", counted(pair.train->size(), "sample", "samples"),
      has_targets ? counted(std::ssize(outputs), "target", "targets")
                  : counted(std::ssize(outputs), "class", "classes"),
      pair.validation->size(), format, path.string(), ignored_text(pair.ignored));
  return {.train = mixes ? as_mixed(pair.train, options.mix) : as_source(pair.train, pair.trained),
          .validation = mixes ? as_mixed(pair.validation, {}) : as_source(pair.validation, pair.trained),
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
}

}  // namespace plexaura
