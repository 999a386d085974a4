#include "app/data/open_shards.h"

#include <fmt/format.h>
#include <memory>
#include <system_error>
#include <utility>

#include "app/data/label_column.h"
#include "training/data/shards/sharded_samples.h"
#include "training/data/tables/standardise.h"

namespace plexaura {

namespace {

using FilesPtr = std::shared_ptr<const ShardFiles>;

// Opens the validation part. Returns null if there is none, or if the run does not validate.
FilesPtr open_validation(const DataOptions& options) {
  std::error_code error;
  if (!options.validates() || !std::filesystem::exists(options.path / index_name("val"), error))
    return nullptr;
  return std::make_shared<ShardFiles>(options.path, "val");
}

void require_same_contents(const std::filesystem::path& folder, const ShardFiles& train,
                           const ShardFiles& validation) {
  if (train.contents() == validation.contents()) return;
  throw UserError(
      fmt::format("{}: the samples, columns or classes of {} are others than those of {}; pack both parts "
                  "from the same data",
                  folder.string(), index_name("val"), index_name("train")));
}

void require_task(const Section& data, const ShardFiles& files, Task task) {
  const bool has_targets = !files.contents().targets.empty();
  if (has_targets == (task != Task::classification)) return;
  throw data.error("path", fmt::format("has shards of samples with {}, and model.task is {}; {}",
                                       has_targets ? "targets" : "classes", name_of(task),
                                       has_targets ? "set model.task to regression or multi_label"
                                                   : "set model.task to classification, or pack targets"));
}

OpenedShards open_image_shards(const Section& data, const DataOptions& options, const FilesPtr& train,
                               const FilesPtr& validation) {
  data.refuse({"standardise", "folds", "validation_share", "split_seed"},
              "the shards in data.path have images and a validation part of their own");
  if (options.validates() && !validation)
    throw data.error("path",
                     fmt::format("has shards of images without {}; pack a folder that has val, or set "
                                 "data.validation_limit to 0",
                                 index_name("val")));
  OpenedShards opened;
  DataPair& pair = opened.images;
  ImageFolderOptions centred = options.images;
  centred.augment = false;
  pair.train = std::make_shared<ShardedImages>(train, options.images);
  if (validation) pair.validation = std::make_shared<ShardedImages>(validation, centred);
  pair.pixels = pixel_scale_of(options.pixels, data);
  return opened;
}

DatasetPtr samples_in(const FilesPtr& files) {
  if (files->contents().sample.dtype == DType::uint8)
    return std::make_shared<ShardedSamples<std::uint8_t>>(files);
  return std::make_shared<ShardedSamples<float>>(files);
}

// Throws unless every target is a label: 0 or 1.
void require_target_labels(const FilesPtr& files, OnError on_error) {
  const ShardedSamples<float> rows(files);
  const ShardContents& contents = files->contents();
  std::vector<float> row(contents.columns.size() + contents.targets.size());
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    if (!read_values(rows, i, std::as_writable_bytes(std::span(row)), on_error)) continue;
    for (std::size_t column = contents.columns.size(); column < row.size(); ++column)
      require_label(row[column], [&] {
        return fmt::format("{}: its target '{}'", files->place(i),
                           contents.targets[column - contents.columns.size()]);
      });
  }
}

OpenedShards open_sample_shards(const Section& data, Task task, OnError on_error, const FilesPtr& train,
                                const FilesPtr& validation) {
  data.refuse({"image_size", "resize_size", "augment", "augmentation", "min_crop_scale", "horizontal_flip"},
              "the shards in data.path have samples and no image files");
  const ShardContents& contents = train->contents();
  if (contents.sample.dtype != DType::uint8)
    data.refuse({"mean", "stddev"}, "the shards in data.path have numbers and no bytes of images");
  if (contents.columns.empty())
    data.refuse({"standardise"}, "the samples in data.path are not rows of numbers");
  if (validation)
    data.refuse({"folds", "validation_share", "split_seed"},
                "the shards in data.path have a validation part");
  if (task == Task::multi_label) require_target_labels(train, on_error);
  if (task == Task::multi_label && validation) require_target_labels(validation, on_error);
  return {.samples = {.samples = samples_in(train),
                      .validation = validation ? samples_in(validation) : nullptr,
                      .columns = contents.columns,
                      .targets = contents.targets,
                      .categories = contents.categories}};
}

}  // namespace

OpenedShards open_shards(const Section& data, const DataOptions& options, Task task,
                         const std::optional<TrainedData>& trained) {
  const auto train = std::make_shared<ShardFiles>(options.path, "train");
  const FilesPtr validation = open_validation(options);
  if (validation) require_same_contents(options.path, *train, *validation);
  require_task(data, *train, task);
  const ShardContents& contents = train->contents();
  if (trained && contents.targets.empty() && contents.classes != trained->classes)
    throw data.error(
        "path", "has shards of other classes than those of the weights; pack data with the same classes");
  OpenedShards opened = contents.kind == RecordKind::image_file
                            ? open_image_shards(data, options, train, validation)
                            : open_sample_shards(data, task, options.on_error, train, validation);
  opened.identity = train->identity();
  return opened;
}

}  // namespace plexaura
