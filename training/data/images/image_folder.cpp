#include "training/data/images/image_folder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "training/data/images/crop.h"
#include "training/data/images/image.h"
#include "training/data/images/resample.h"
#include "training/data/random.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

// Writes [height, width, 3] as [3, height, width].
void write_planes(const Image& image, std::span<std::uint8_t> planes) {
  const std::size_t plane = planes.size() / 3;
  for (std::size_t pixel = 0; pixel < plane; ++pixel)
    for (std::size_t channel = 0; channel < 3; ++channel)
      planes[channel * plane + pixel] = image.pixels[pixel * 3 + channel];
}

void augment(Image image, const ImageFolderOptions& options, Random& random, std::span<std::uint8_t> sample,
             ClassMask* mask) {
  if (!side_after(options.operations)) {
    const Crop crop = centre_crop({image.width, image.height}, shorter_side_of(options), options.image_size);
    image = resample(image, crop);
    if (mask != nullptr) mask->classes = resample_nearest(mask->classes, crop);
  }
  for (const auto& operation : options.operations) {
    Random same = random;
    operation->apply(image, random);
    if (mask != nullptr && operation->mask_rule() != MaskRule::unchanged)
      operation->apply_to_mask(*mask, same);
  }
  write_planes(image, sample);
}

}  // namespace

std::int64_t shorter_side_of(const ImageFolderOptions& options) {
  if (options.resize_size) return *options.resize_size;
  return std::llround(static_cast<double>(options.image_size) * 256 / 224);
}

void check_image_options(const fs::path& root, const ImageFolderOptions& options) {
  if (options.image_size < 1)
    throw UserError(
        fmt::format("{}: image_size is {}; give 1 pixel or more", root.string(), options.image_size));
  if (!(options.min_crop_scale > 0 && options.min_crop_scale <= 1))
    throw UserError(fmt::format("{}: the smallest crop is {} of an image; give more than 0 and at most 1",
                                root.string(), options.min_crop_scale));
  if (shorter_side_of(options) < options.image_size)
    throw UserError(fmt::format(
        "{}: images are scaled to {} pixels before {} are taken from the centre; give a resize_size "
        "of {} or more",
        root.string(), shorter_side_of(options), options.image_size, options.image_size));
  if (const auto side = side_after(options.operations); side && *side != options.image_size)
    throw UserError(fmt::format(
        "{}: augmentation produces images of {} pixels on each side, and image_size is {}; give both "
        "the same size",
        root.string(), *side, options.image_size));
}

ImageFolderDataset::ImageFolderDataset(const fs::path& root, const ImageFolderOptions& options)
    : root_(root), options_(options) {
  for (const fs::directory_entry& entry : entries_in(root)) {
    const std::string name = entry.path().filename().string();
    if (is_folder(entry))
      class_names_.push_back(name);
    else if (has_image_extension(name))
      ++ignored_.beside_classes;
  }
  std::ranges::sort(class_names_);
  check_image_options(root, options);
  if (class_names_.empty())
    throw UserError(
        fmt::format("{}: contains no folder; each class needs a folder of images, {}/CLASS/image.jpg",
                    root.string(), root.string()));
  for (const std::string& name : class_names_) add_class(name);
}

ImageFolderDataset::ImageFolderDataset(const ImageFolderDataset& files, const ImageFolderOptions& options)
    : root_(files.root_),
      options_(options),
      class_names_(files.class_names_),
      files_(files.files_),
      ignored_(files.ignored_) {
  check_image_options(root_, options);
}

void ImageFolderDataset::add_class(const std::string& name) {
  const fs::path folder = root_ / name;
  if (first_not_utf8(name) < name.size())
    throw UserError(
        fmt::format("{}: the name of the folder, which is that of a class, is not UTF-8; rename the folder",
                    folder.string()));
  const ImageList list(folder);
  const std::vector<std::string> names = list.sorted_names();
  list.require_image(fmt::format("the folder of class '{}' ", name), "add some or remove it");
  const std::int64_t label = files_.empty() ? 0 : files_.back().label + 1;
  for (const std::string& file : names) files_.push_back({file, label});
  ignored_ += list.ignored();
}

std::string ImageFolderDataset::name(std::int64_t index) const {
  const File& file = files_[static_cast<std::size_t>(index)];
  return fmt::format("{}/{}", class_names_[static_cast<std::size_t>(file.label)], file.name);
}

fs::path ImageFolderDataset::path(std::int64_t index) const { return root_ / name(index); }

void ImageFolderDataset::read(std::int64_t index, const SampleContext& context,
                              std::span<std::uint8_t> sample, std::int64_t& label) const {
  label = files_[static_cast<std::size_t>(index)].label;
  make_sample(read_image_file(path(index)), options_, context, index, sample);
}

void make_sample(Image image, const ImageFolderOptions& options, const SampleContext& context,
                 std::int64_t index, std::span<std::uint8_t> sample, ClassMask* mask) {
  const ImageSize size{image.width, image.height};
  Random random{context.seed, static_cast<std::uint64_t>(context.epoch), static_cast<std::uint64_t>(index)};
  if (options.augment && !options.operations.empty()) {
    augment(std::move(image), options, random, sample, mask);
    return;
  }
  const std::int64_t side = options.image_size;
  const Crop crop = options.augment
                        ? random_crop(size, side, options.min_crop_scale, options.horizontal_flip, random)
                        : centre_crop(size, shorter_side_of(options), side);
  resample(image, crop, sample);
  if (mask != nullptr) mask->classes = resample_nearest(mask->classes, crop);
}

Tensor read_image(const fs::path& file, const ImageFolderOptions& options) {
  check_image_options(file, options);
  const Image image = read_image_file(file);
  Tensor sample(TensorType{DType::uint8, {3, options.image_size, options.image_size}});
  const ImageSize size{image.width, image.height};
  resample(image, centre_crop(size, shorter_side_of(options), options.image_size), sample.as<std::uint8_t>());
  return sample;
}

}  // namespace plexaura
