#include <algorithm>

#include "training/data/augmentation/functional.h"
#include "training/data/augmentation/operations.h"

namespace plexaura::augmentation {

void hflip(Image& image) {
  const std::int64_t row = image.width * 3;
  for (std::int64_t y = 0; y < image.height; ++y) {
    std::uint8_t* left = image.pixels.data() + y * row;
    for (std::uint8_t* right = left + row - 3; left < right; left += 3, right -= 3)
      std::swap_ranges(left, left + 3, right);
  }
}

void vflip(Image& image) {
  const std::int64_t row = image.width * 3;
  std::uint8_t* const pixels = image.pixels.data();
  for (std::int64_t y = 0; y < image.height / 2; ++y)
    std::swap_ranges(pixels + y * row, pixels + (y + 1) * row, pixels + (image.height - 1 - y) * row);
}

HorizontalFlip::HorizontalFlip(double p) : p_(checked_probability("horizontal_flip", p)) {}

void HorizontalFlip::apply(Image& image, Random& random) const {
  if (random.uniform() < p_) hflip(image);
}

void HorizontalFlip::apply_to_mask(ClassMask& mask, Random& random) const { apply(mask.classes, random); }

VerticalFlip::VerticalFlip(double p) : p_(checked_probability("vertical_flip", p)) {}

void VerticalFlip::apply(Image& image, Random& random) const {
  if (random.uniform() < p_) vflip(image);
}

void VerticalFlip::apply_to_mask(ClassMask& mask, Random& random) const { apply(mask.classes, random); }

}  // namespace plexaura::augmentation
