#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"
#include "training/data/augmentation/operations.h"
#include "training/data/images/resample.h"

namespace plexaura::augmentation {

namespace {

constexpr double least_area = 1e-6;
constexpr double most_ratio = 1000;

// Returns the part of an image that begins at (left, top), which may lie outside; there it has the colour `fill`.
Image window_of(const Image& image, std::int64_t left, std::int64_t top, std::int64_t side, Colour fill) {
  Image result{side, side, std::vector<std::uint8_t>(static_cast<std::size_t>(side * side * 3))};
  std::uint8_t* to = result.pixels.data();
  for (std::int64_t y = top; y < top + side; ++y)
    for (std::int64_t x = left; x < left + side; ++x) {
      const bool is_inside = x >= 0 && x < image.width && y >= 0 && y < image.height;
      to = std::copy_n(is_inside ? image.pixels.data() + (y * image.width + x) * 3 : fill.data(), 3, to);
    }
  return result;
}

// Returns a random first pixel of a window of `side` pixels on an axis of `pixels` pixels with `padding` on both ends.
std::int64_t random_start(std::int64_t pixels, std::int64_t padding, std::int64_t side, Random& random) {
  const std::int64_t missing = std::max<std::int64_t>(side - pixels - 2 * padding, 0);
  const std::int64_t places = pixels + 2 * padding + 2 * missing - side + 1;
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(places))) - padding - missing;
}

}  // namespace

RandomResizedCrop::RandomResizedCrop(const Options& options) : options_(options) {
  checked_side(name(), options.size);
  checked_span(name(), "scale", options.scale, least_area, 1);
  checked_span(name(), "ratio", options.ratio, 1 / most_ratio, most_ratio);
}

Crop RandomResizedCrop::drawn_crop(const Image& image, Random& random) const {
  const BoxRule rule{options_.scale.low, options_.scale.high, options_.ratio.low, options_.ratio.high};
  const Box source = random_box({image.width, image.height}, rule, random);
  const std::int64_t side = options_.size;
  return {.source = source, .scaled = {side, side}, .window = {0, 0, side, side}};
}

void RandomResizedCrop::apply(Image& image, Random& random) const {
  image = resample(image, drawn_crop(image, random));
}

void RandomResizedCrop::apply_to_mask(ClassMask& mask, Random& random) const {
  mask.classes = resample_nearest(mask.classes, drawn_crop(mask.classes, random));
}

RandomCrop::RandomCrop(const Options& options) : options_(options) {
  checked_side(name(), options.size);
  if (options.padding < 0 || options.padding > options.size)
    throw UserError(fmt::format("random_crop: the padding is {}; give 0 to {} pixels, the size",
                                options.padding, options.size));
}

Image RandomCrop::cropped(const Image& image, Colour fill, Random& random) const {
  const std::int64_t top = random_start(image.height, options_.padding, options_.size, random);
  const std::int64_t left = random_start(image.width, options_.padding, options_.size, random);
  return window_of(image, left, top, options_.size, fill);
}

void RandomCrop::apply(Image& image, Random& random) const { image = cropped(image, options_.fill, random); }

void RandomCrop::apply_to_mask(ClassMask& mask, Random& random) const {
  mask.classes = cropped(mask.classes, {mask.outside, mask.outside, mask.outside}, random);
}

ResizedCentreCrop::ResizedCentreCrop(const Options& options) : options_(options) {
  checked_side(name(), options.size);
  checked_side(name(), options.resize);
  if (options.resize < options.size)
    throw UserError(
        fmt::format("center_crop: the shorter side is scaled to {} pixels, and {} are taken from it; give a "
                    "resize of {} or more",
                    options.resize, options.size, options.size));
}

void ResizedCentreCrop::apply(Image& image, Random& /*random*/) const {
  image = resample(image, centre_crop({image.width, image.height}, options_.resize, options_.size));
}

void ResizedCentreCrop::apply_to_mask(ClassMask& mask, Random& /*random*/) const {
  const ImageSize size{mask.classes.width, mask.classes.height};
  mask.classes = resample_nearest(mask.classes, centre_crop(size, options_.resize, options_.size));
}

}  // namespace plexaura::augmentation
