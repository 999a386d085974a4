#include <cstddef>

#include "training/data/augmentation/functional.h"

namespace plexaura::augmentation {

namespace {

// Returns the mean of the image in grey, rounded.
int mean_luma(const Image& image) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) sum += luma(image.pixels.data() + i);
  const double pixels = static_cast<double>(image.pixels.size()) / 3;
  return static_cast<int>(static_cast<double>(sum) / pixels +
                          0.5);  // NOLINT(bugprone-incorrect-roundings): as Pillow
}

// Multiplies the distance of each value from `centre`.
void scale_around(Image& image, int centre, double factor) {
  ValueTable table;
  for (int value = 0; value < 256; ++value)
    table[static_cast<std::size_t>(value)] = blend(centre, value, static_cast<float>(factor));
  map_values(image, table);
}

}  // namespace

void map_values(Image& image, std::span<const ValueTable, 3> tables) {
  for (std::size_t i = 0; i < image.pixels.size(); i += 3)
    for (std::size_t channel = 0; channel < 3; ++channel)
      image.pixels[i + channel] = tables[channel][image.pixels[i + channel]];
}

void map_values(Image& image, const ValueTable& table) {
  for (std::uint8_t& value : image.pixels) value = table[value];
}

void adjust_brightness(Image& image, double factor) { scale_around(image, 0, factor); }

void adjust_contrast(Image& image, double factor) { scale_around(image, mean_luma(image), factor); }

void adjust_saturation(Image& image, double factor) {
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    const int grey = luma(image.pixels.data() + i);
    for (std::size_t channel = 0; channel < 3; ++channel)
      image.pixels[i + channel] = blend(grey, image.pixels[i + channel], static_cast<float>(factor));
  }
}

}  // namespace plexaura::augmentation
