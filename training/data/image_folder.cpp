#include "training/data/image_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <functional>
#include <system_error>

#include "core/error.h"
#include "training/data/crop.h"
#include "training/data/image.h"
#include "training/data/resample.h"
#include "training/data/utf8.h"
#include "training/file.h"

namespace plexaura {

namespace {

// Whether an entry of the root is the folder of a class. A link that leads nowhere is an error: a class would
// be missing.
bool is_class(const std::filesystem::directory_entry& entry) {
  std::error_code error;
  if (entry.is_directory(error)) return true;
  if (error || !entry.exists(error))
    throw UserError(
        fmt::format("{}: is a link that leads nowhere; mend or remove it", entry.path().string()));
  return false;
}

// The names in a folder that are `wanted`, sorted, without those that begin with a dot.
std::vector<std::string> names_in(
    const std::filesystem::path& folder,
    const std::function<bool(const std::filesystem::directory_entry&)>& wanted) {
  std::vector<std::string> names;
  try {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      if (!name.starts_with('.') && wanted(entry)) names.push_back(std::move(name));
    }
  } catch (const std::filesystem::filesystem_error& error) {
    throw UserError(fmt::format("{}: cannot be listed: {}; check the path and its permissions",
                                folder.string(), error.code().message()));
  }
  std::ranges::sort(names);
  return names;
}

// A hint that spares opening the file: there may be a million of them.
bool has_image_extension(const std::string& name) {
  std::string extension = std::filesystem::path(name).extension().string();
  std::ranges::transform(extension, extension.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

// Whatever is called an image must be one: a folder, a pipe or a link that leads nowhere is an error when it
// is read, as a broken image is.
bool may_be_image(const std::filesystem::directory_entry& entry) {
  std::error_code ignored;
  return has_image_extension(entry.path().filename().string()) || entry.is_regular_file(ignored);
}

bool begins_like_image(const std::filesystem::path& path) {
  std::array<std::uint8_t, 8> head{};
  try {
    const InputFile file(path);
    file.read(0, std::as_writable_bytes(std::span(head).first(std::min(head.size(), file.bytes()))));
  } catch (const UserError&) {
    return false;
  }
  return is_image(head);
}

void check_options(const std::filesystem::path& root, const ImageFolderOptions& options) {
  if (options.image_size < 1)
    throw UserError(
        fmt::format("{}: image_size is {}; give 1 pixel or more", root.string(), options.image_size));
  if (!(options.min_crop_scale > 0 && options.min_crop_scale <= 1))
    throw UserError(fmt::format("{}: the smallest crop is {} of an image; give more than 0 and at most 1",
                                root.string(), options.min_crop_scale));
}

}  // namespace

std::int64_t shorter_side_of(const ImageFolderOptions& options) {
  return std::llround(static_cast<double>(options.image_size) * 256 / 224);
}

ImageFolderDataset::ImageFolderDataset(const std::filesystem::path& root, const ImageFolderOptions& options)
    : root_(root), options_(options), class_names_(names_in(root, is_class)) {
  check_options(root, options);
  if (class_names_.empty())
    throw UserError(fmt::format("{}: holds no folder; images lie in one folder per class, {}/CLASS/image.jpg",
                                root.string(), root.string()));
  for (std::size_t label = 0; label < class_names_.size(); ++label) {
    const std::filesystem::path folder = root / class_names_[label];
    if (first_not_utf8(class_names_[label]) < class_names_[label].size())
      throw UserError(
          fmt::format("{}: the name of the folder, which is that of a class, is not UTF-8; rename the folder",
                      folder.string()));
    const auto looks_inside = [&](const std::string& name) { return begins_like_image(folder / name); };
    std::vector<std::string> names = names_in(folder, may_be_image);
    ignored_files_ += static_cast<std::int64_t>(std::erase_if(
        names, [&](const std::string& name) { return !has_image_extension(name) && !looks_inside(name); }));
    if (std::ranges::none_of(names, looks_inside))
      throw UserError(fmt::format(
          "{}: the folder of class '{}' holds not an image (a JPEG or PNG file); add some or remove "
          "it",
          folder.string(), class_names_[label]));
    for (const std::string& name : names) files_.push_back({name, static_cast<std::int64_t>(label)});
  }
}

std::filesystem::path ImageFolderDataset::path(std::int64_t index) const {
  const File& file = files_[static_cast<std::size_t>(index)];
  return root_ / class_names_[static_cast<std::size_t>(file.label)] / file.name;
}

void ImageFolderDataset::read(std::int64_t index, const SampleContext& context,
                              std::span<std::uint8_t> sample, std::int64_t& label) const {
  const std::filesystem::path file = path(index);
  const Image image = decode_image(InputFile(file).read_all(), file.string());
  const ImageSize size{image.width, image.height};
  Random random{context.seed, static_cast<std::uint64_t>(context.epoch), static_cast<std::uint64_t>(index)};
  const std::int64_t side = options_.image_size;
  const Crop crop = options_.augment
                        ? random_crop(size, side, options_.min_crop_scale, options_.horizontal_flip, random)
                        : centre_crop(size, shorter_side_of(options_), side);
  resample(image, crop, sample);
  label = files_[static_cast<std::size_t>(index)].label;
}

Tensor read_image(const std::filesystem::path& file, const ImageFolderOptions& options) {
  check_options(file, options);
  const Image image = decode_image(InputFile(file).read_all(), file.string());
  Tensor sample(TensorType{DType::uint8, {3, options.image_size, options.image_size}});
  const ImageSize size{image.width, image.height};
  resample(image, centre_crop(size, shorter_side_of(options), options.image_size), sample.as<std::uint8_t>());
  return sample;
}

}  // namespace plexaura
