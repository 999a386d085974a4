#include "app/data/pack_data.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <span>
#include <vector>

#include "app/data/data_options.h"
#include "app/data/data_pair.h"
#include "app/data/image_layout.h"
#include "app/data/open_arrays.h"
#include "app/data/open_pixels.h"
#include "training/data/images/crop.h"
#include "training/data/images/image.h"
#include "training/data/images/resample.h"
#include "training/data/shards/shard_writer.h"
#include "training/data/tables/csv.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

std::string summary(const PackOptions& options, const std::string& part, const ShardIndex& index) {
  std::uint64_t bytes = 0;
  for (const ShardFile& shard : index.shards) bytes += shard.bytes;
  return fmt::format("{}: {} samples, {} shards, {} bytes\n", (options.folder / index_name(part)).string(),
                     index.records.size(), index.shards.size(), bytes);
}

// Returns an image file with a shorter side of at most `side` pixels. The longer one is rounded down, as by
// torchvision's Resize.
std::vector<std::uint8_t> resized(std::vector<std::uint8_t> file, const std::string& name, std::int64_t side,
                                  int quality) {
  const Image image = decode_image(file, name);
  const std::int64_t shorter = std::min(image.width, image.height);
  if (shorter <= side) return file;
  const ImageSize size{image.width * side / shorter, image.height * side / shorter};
  const Image small = resample(image, {.source = {0, 0, image.width, image.height},
                                       .scaled = size,
                                       .window = {0, 0, size.width, size.height}});
  return encode_jpeg(small, quality);
}

std::string pack_images(const fs::path& root, const std::string& part, const PackOptions& options) {
  const ImageFolderDataset images(root / part);
  ShardWriter writer(options.folder, part, {.kind = RecordKind::image_file, .classes = images.class_names()},
                     options.shard_bytes);
  for (std::int64_t i = 0; i < images.size(); ++i) {
    const fs::path path = images.path(i);
    std::vector<std::uint8_t> file = InputFile(path).read_all();
    if (options.resize)
      file = resized(std::move(file), path.string(), *options.resize, options.quality);
    else if (!is_image(file))
      decode_image(file, path.string());  // throws UserError
    writer.add(std::as_bytes(std::span(file)), images.label(i));
  }
  writer.finish();
  return summary(options, part, writer.index());
}

std::string pack_samples(const Dataset& samples, const std::string& part, const UnsplitSamples& raw,
                         const PackOptions& options) {
  const TensorType type{samples.sample_dtype(), samples.sample_shape()};
  constexpr std::int64_t colours = 3;
  if (type.dtype == DType::uint8 && type.shape[0] != colours)
    throw UserError(
        fmt::format("the images are {}, and shards have images of three channels; train on these without "
                    "packing them",
                    to_string(type)));
  ShardWriter writer(options.folder, part,
                     {.kind = RecordKind::sample,
                      .sample = type,
                      .classes = samples.class_names(),
                      .columns = raw.columns,
                      .categories = raw.categories,
                      .targets = raw.targets},
                     options.shard_bytes);
  std::vector<std::byte> sample(static_cast<std::size_t>(type.bytes()));
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    std::int64_t label = 0;
    samples.read_fields(
        i, {}, std::vector<std::span<std::byte>>{sample, std::as_writable_bytes(std::span(&label, 1))});
    writer.add(sample, label);
  }
  writer.finish();
  return summary(options, part, writer.index());
}

// The index of the training samples comes last: see prepare_shards().
std::string pack_both(const UnsplitSamples& raw, const PackOptions& options) {
  const std::string validation = raw.validation ? pack_samples(*raw.validation, "val", raw, options) : "";
  return pack_samples(*raw.samples, "train", raw, options) + validation;
}

std::string pack_folder(const Section& data, const DataOptions& read, const PackOptions& options) {
  data.refuse({"folds", "validation_share"}, "tools/pack packs the images of the folders train and val");
  require_parts(data, read.path, read.validates());
  if (options.pixels) {
    const ImageFolderOptions centred{.image_size = *options.pixels};
    UnsplitSamples raw{.samples = std::make_shared<ImageFolderDataset>(read.path / "train", centred)};
    if (read.validates()) raw.validation = std::make_shared<ImageFolderDataset>(read.path / "val", centred);
    return pack_both(raw, options);
  }
  const std::string validation = read.validates() ? pack_images(read.path, "val", options) : "";
  return pack_images(read.path, "train", options) + validation;
}

UnsplitSamples table_to_pack(const Section& data, const DataOptions& read) {
  if (read.csv.missing == MissingCells::mean)
    throw data.error("missing",
                     "is mean, and columns are measured when a run splits the data; pack with drop or value");
  const auto table = std::make_shared<CsvDataset>(read.path, read.csv);
  return {.samples = table,
          .columns = table->feature_names(),
          .targets = table->target_names(),
          .categories = read.categories};
}

UnsplitSamples open_cifar_samples(const Section& data, const DataOptions& read) {
  const DataPair pair = open_cifar(data, read);
  return {.samples = pair.train, .validation = pair.validation};
}

}  // namespace

std::string pack_data(const Config& config, const PackOptions& options) {
  const Section data = config.section("data");
  const Task task = read_task(config.section("model"));
  const DataOptions read = read_data_options(data, DataUse::train, task);
  const std::string& format = read.format();
  if (format != "image_folder" && format != "csv" && format != "cifar" && !read.has_arrays())
    throw data.error(
        "format",
        fmt::format("is {}, which is not packed; give csv, npy, npz, hdf5, cifar or image_folder", format));
  data.refuse(
      {"use_fraction", "limit", "mixup_alpha", "cutmix_alpha", "noise", "sampling", "sampling_weights"},
      "tools/pack packs all samples as they are; give it where the model is trained");
  if (format != "image_folder" && (options.resize || options.pixels))
    throw data.error(
        "format",
        fmt::format("is {}, and --resize and --pixels are for image_folder; leave them out", format));
  if (!read.target_folder.empty())
    throw data.error("targets",
                     "names the targets of the images, and tools/pack packs images whose folders are their "
                     "classes; train on images with targets without packing them");
  prepare_shards(options.folder);
  if (format == "image_folder") return pack_folder(data, read, options);
  if (format == "csv") return pack_both(table_to_pack(data, read), options);
  if (read.has_arrays()) return pack_both(open_arrays(data, read, task, {}), options);
  return pack_both(open_cifar_samples(data, read), options);
}

}  // namespace plexaura
