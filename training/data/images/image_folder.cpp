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

// A broken link is an error, because a class or images would be missing.
bool is_folder(const fs::directory_entry& entry) {
  std::error_code error;
  if (entry.is_directory(error)) return true;
  if (error || !entry.exists(error))
    throw UserError(
        fmt::format("{}: is a link that leads nowhere; mend or remove it", entry.path().string()));
  return false;
}

// Returns the entries of a folder whose names do not begin with a dot.
std::vector<fs::directory_entry> entries_in(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  try {
    for (const auto& entry : fs::directory_iterator(folder))
      if (!entry.path().filename().string().starts_with('.')) entries.push_back(entry);
  } catch (const fs::filesystem_error& error) {
    throw UserError(fmt::format("{}: cannot be listed: {}; check the path and its permissions",
                                folder.string(), error.code().message()));
  }
  return entries;
}

// Looks only at the name, because opening up to a million files would take long.
bool has_image_extension(const std::string& name) {
  std::string extension = fs::path(name).extension().string();
  std::ranges::transform(extension, extension.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

// Returns as many bytes as is_image() and unread_format() need.
std::vector<std::uint8_t> head_of(const fs::path& path) {
  std::vector<std::uint8_t> head(12);
  try {
    const InputFile file(path);
    head.resize(std::min(head.size(), file.bytes()));
    file.read(0, std::as_writable_bytes(std::span(head)));
  } catch (const UserError&) {
    head.clear();
  }
  return head;
}

// The images in a folder and in folders within it.
class ImageList {
 public:
  explicit ImageList(const fs::path& folder) : root_(folder) { add("", {}); }

  // Returns names relative to the folder, sorted by the path of their own folder and then by name.
  std::vector<std::string> sorted_names() const {
    std::vector<std::string> names;
    for (const auto& [below, files] : files_)
      for (const std::string& file : files) names.push_back(below.empty() ? file : below + "/" + file);
    return names;
  }
  const IgnoredFiles& ignored() const { return ignored_; }

 private:
  // `above`: the real paths of the folders that lead to this one.
  void add(const std::string& below, std::vector<fs::path> above) {
    const fs::path folder = below.empty() ? root_ : root_ / below;
    check_loop(folder, above);
    for (const fs::directory_entry& entry : entries_in(folder)) {
      const std::string name = entry.path().filename().string();
      // A file with the name of an image must be one: a folder, a pipe or a broken link causes an error when
      // it is read, as a damaged image does.
      if (has_image_extension(name))
        files_[below].insert(name);
      else if (is_folder(entry))
        add(below.empty() ? name : below + "/" + name, above);
      else if (std::error_code error; entry.is_regular_file(error))
        add_unnamed(below, entry.path());
    }
  }

  static void check_loop(const fs::path& folder, std::vector<fs::path>& above) {
    std::error_code error;
    fs::path real = fs::canonical(folder, error);
    if (std::ranges::find(above, real) != above.end())
      throw UserError(fmt::format(
          "{}: is a link to a folder above it, which would have no end; remove the link", folder.string()));
    above.push_back(std::move(real));
  }

  // Adds a file whose name does not show its format.
  void add_unnamed(const std::string& below, const fs::path& path) {
    const std::vector<std::uint8_t> head = head_of(path);
    if (is_image(head))
      files_[below].insert(path.filename().string());
    else if (const std::string_view format = unread_format(head); !format.empty())
      ++ignored_.pictures[std::string(format)];
    else
      ++ignored_.others;
  }

  fs::path root_;
  std::map<std::string, std::set<std::string>> files_;
  IgnoredFiles ignored_;
};

std::string unread_pictures(const IgnoredFiles& ignored) {
  std::vector<std::string> formats;
  for (const auto& [format, count] : ignored.pictures)
    formats.push_back(fmt::format("{} in {}", count, format));
  return formats.empty() ? "" : fmt::format(" but {}", fmt::join(formats, ", "));
}

void check_options(const fs::path& root, const ImageFolderOptions& options) {
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

// Writes [height, width, 3] as [3, height, width].
void write_planes(const Image& image, std::span<std::uint8_t> planes) {
  const std::size_t plane = planes.size() / 3;
  for (std::size_t pixel = 0; pixel < plane; ++pixel)
    for (std::size_t channel = 0; channel < 3; ++channel)
      planes[channel * plane + pixel] = image.pixels[pixel * 3 + channel];
}

void augment(Image image, const ImageFolderOptions& options, Random& random, std::span<std::uint8_t> sample) {
  if (!side_after(options.operations))
    image = resample(image,
                     centre_crop({image.width, image.height}, shorter_side_of(options), options.image_size));
  for (const auto& operation : options.operations) operation->apply(image, random);
  write_planes(image, sample);
}

}  // namespace

std::int64_t shorter_side_of(const ImageFolderOptions& options) {
  if (options.resize_size) return *options.resize_size;
  return std::llround(static_cast<double>(options.image_size) * 256 / 224);
}

IgnoredFiles& IgnoredFiles::operator+=(const IgnoredFiles& more) {
  for (const auto& [format, count] : more.pictures) pictures[format] += count;
  others += more.others;
  beside_classes += more.beside_classes;
  return *this;
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
  check_options(root, options);
  if (class_names_.empty())
    throw UserError(
        fmt::format("{}: contains no folder; each class needs a folder of images, {}/CLASS/image.jpg",
                    root.string(), root.string()));
  for (const std::string& name : class_names_) add_class(name);
}

void ImageFolderDataset::add_class(const std::string& name) {
  const fs::path folder = root_ / name;
  if (first_not_utf8(name) < name.size())
    throw UserError(
        fmt::format("{}: the name of the folder, which is that of a class, is not UTF-8; rename the folder",
                    folder.string()));
  const ImageList list(folder);
  const std::vector<std::string> names = list.sorted_names();
  if (std::ranges::none_of(names, [&](const std::string& file) { return is_image(head_of(folder / file)); }))
    throw UserError(fmt::format(
        "{}: the folder of class '{}' contains no image (a JPEG or PNG file){}; add some or remove "
        "it",
        folder.string(), name, unread_pictures(list.ignored())));
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
  const fs::path file = path(index);
  label = files_[static_cast<std::size_t>(index)].label;
  make_sample(decode_image(InputFile(file).read_all(), file.string()), options_, context, index, sample);
}

void make_sample(Image image, const ImageFolderOptions& options, const SampleContext& context,
                 std::int64_t index, std::span<std::uint8_t> sample) {
  const ImageSize size{image.width, image.height};
  Random random{context.seed, static_cast<std::uint64_t>(context.epoch), static_cast<std::uint64_t>(index)};
  if (options.augment && !options.operations.empty()) {
    augment(std::move(image), options, random, sample);
    return;
  }
  const std::int64_t side = options.image_size;
  const Crop crop = options.augment
                        ? random_crop(size, side, options.min_crop_scale, options.horizontal_flip, random)
                        : centre_crop(size, shorter_side_of(options), side);
  resample(image, crop, sample);
}

Tensor read_image(const fs::path& file, const ImageFolderOptions& options) {
  check_options(file, options);
  const Image image = decode_image(InputFile(file).read_all(), file.string());
  Tensor sample(TensorType{DType::uint8, {3, options.image_size, options.image_size}});
  const ImageSize size{image.width, image.height};
  resample(image, centre_crop(size, shorter_side_of(options), options.image_size), sample.as<std::uint8_t>());
  return sample;
}

}  // namespace plexaura
