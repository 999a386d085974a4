#include "training/data/images/image_pairs.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

// Returns the path of a file without its extension.
std::string stem_of(const std::string& name) { return fs::path(name).replace_extension().string(); }

void check_sizes(const Image& image, const fs::path& path, const Image& target, const fs::path& target_path) {
  if (image.width == target.width && image.height == target.height) return;
  throw UserError(fmt::format("{}: has {}x{} pixels, and its target {} has {}x{}; give both the same size",
                              path.string(), image.width, image.height, target_path.string(), target.width,
                              target.height));
}

std::span<std::uint8_t> as_bytes_of_pixels(std::span<std::byte> values) {
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.size()};
}

}  // namespace

void check_mask_operations(const ImageFolderOptions& options, const MaskOptions& mask,
                           const std::vector<std::string>& others) {
  if (!options.augment) return;
  for (const auto& operation : options.operations) {
    if (operation->mask_rule() == MaskRule::refused)
      throw UserError(fmt::format(
          "{} is an operation that masks of classes cannot follow; leave it out{}", operation->name(),
          others.empty() ? "" : fmt::format(", or choose from {}", fmt::join(others, ", "))));
    if (operation->mask_rule() == MaskRule::outside && !mask.ignored)
      throw UserError(
          fmt::format("after {}, pixels from outside of an image have no class; set "
                      "model.ignored_class to the number that they get, for example 255",
                      operation->name()));
  }
}

ImagePairs::ImagePairs(const fs::path& images, const fs::path& targets, const ImageFolderOptions& options,
                       const std::optional<MaskOptions>& mask)
    : images_(images), targets_(targets), options_(options), mask_(mask) {
  check_image_options(images, options);
  if (mask) check_mask_operations(options, *mask);
  const ImageList list(images);
  ignored_ = list.ignored();
  list.require_image("", "add some");
  std::multimap<std::string, std::string> targets_by_stem;
  for (const std::string& name : ImageList(targets).sorted_names())
    targets_by_stem.emplace(stem_of(name), name);
  std::map<std::string, std::string> images_by_stem;
  for (const std::string& name : list.sorted_names()) {
    const auto [first, last] = targets_by_stem.equal_range(stem_of(name));
    if (first == last)
      throw UserError(fmt::format("{}: has no target; add {}, or remove the image", (images / name).string(),
                                  (targets / stem_of(name)).string() + ".png"));
    if (std::next(first) != last)
      throw UserError(fmt::format("{}: has the targets {} and {}; remove one of them",
                                  (images / name).string(), (targets / first->second).string(),
                                  std::next(first)->second));
    if (const auto [other, is_new] = images_by_stem.emplace(stem_of(name), name); !is_new)
      throw UserError(fmt::format("{}: has the same target as {}; give one of them another name",
                                  (images / name).string(), other->second));
    pairs_.push_back({name, first->second});
  }
}

std::vector<Field> ImagePairs::fields() const {
  const std::int64_t side = options_.image_size;
  const Shape image{3, side, side};
  return {{"samples", {DType::uint8, image}}, {"targets", {DType::uint8, mask_ ? Shape{side, side} : image}}};
}

ClassMask ImagePairs::read_mask(const fs::path& path) const {
  ClassMask mask{decode_class_mask(InputFile(path).read_all(), path.string()),
                 static_cast<std::uint8_t>(mask_->ignored.value_or(0))};
  const Image& image = mask.classes;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    const std::int64_t number = image.pixels[i];
    if (number < mask_->classes || number == mask_->ignored) continue;
    const auto pixel = static_cast<std::int64_t>(i / 3);
    throw UserError(fmt::format(
        "{}: pixel {} of row {} has the number {} and there are {} classes, from 0 to {}{}; "
        "correct the mask, set data.classes, or set model.ignored_class to a number that does "
        "not count",
        path.string(), pixel % image.width, pixel / image.width, number, mask_->classes, mask_->classes - 1,
        mask_->ignored ? fmt::format(", or {} to be ignored", *mask_->ignored) : ""));
  }
  return mask;
}

void ImagePairs::read_fields(std::int64_t index, const SampleContext& context,
                             std::span<const std::span<std::byte>> values) const {
  const FilePair& files = pairs_[static_cast<std::size_t>(index)];
  const fs::path path = images_ / files.image;
  const fs::path target_path = targets_ / files.target;
  const std::span<std::uint8_t> sample = as_bytes_of_pixels(values[0]);
  const std::span<std::uint8_t> target = as_bytes_of_pixels(values[1]);
  Image image = read_image_file(path);
  if (!mask_) {
    Image wanted = read_image_file(target_path);
    check_sizes(image, path, wanted, target_path);
    make_sample(std::move(image), options_, context, index, sample);
    make_sample(std::move(wanted), options_, context, index, target);  // draws the same random numbers
    return;
  }
  ClassMask mask = read_mask(target_path);
  check_sizes(image, path, mask.classes, target_path);
  make_sample(std::move(image), options_, context, index, sample, &mask);
  for (std::size_t i = 0; i < target.size(); ++i) target[i] = mask.classes.pixels[3 * i];
}

ImagePairs::ImagePairs(const ImagePairs& whole, std::span<const std::int64_t> indices)
    : images_(whole.images_),
      targets_(whole.targets_),
      options_(whole.options_),
      mask_(whole.mask_),
      ignored_(whole.ignored_) {
  for (const std::int64_t index : indices) pairs_.push_back(whole.pairs_[static_cast<std::size_t>(index)]);
}

std::string ImagePairs::name(std::int64_t index) const {
  const FilePair& files = pairs_[static_cast<std::size_t>(index)];
  return fmt::format("{}, {}", files.image, files.target);
}

}  // namespace plexaura
