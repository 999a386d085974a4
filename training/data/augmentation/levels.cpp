#include <algorithm>
#include <array>
#include <numeric>

#include "training/data/augmentation/functional.h"

namespace plexaura::augmentation {

namespace {

using Histogram = std::array<std::int64_t, 256>;

std::array<Histogram, 3> histograms(const Image& image) {
  std::array<Histogram, 3> counts{};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) ++counts[i % 3][image.pixels[i]];
  return counts;
}

ValueTable identity() {
  ValueTable table;
  std::iota(table.begin(), table.end(), std::uint8_t{0});
  return table;
}

ValueTable stretched(const Histogram& counts) {
  ValueTable table = identity();
  const auto is_used = [](std::int64_t count) { return count > 0; };
  const auto low = static_cast<int>(std::ranges::find_if(counts, is_used) - counts.begin());
  const auto high =
      static_cast<int>(std::find_if(counts.rbegin(), counts.rend(), is_used).base() - counts.begin()) - 1;
  if (high <= low) return table;
  const double scale = 255.0 / (high - low);
  const double offset = -low * scale;
  for (std::size_t value = 0; value < table.size(); ++value)
    table[value] = static_cast<std::uint8_t>(
        std::clamp(static_cast<int>(static_cast<double>(value) * scale + offset), 0, 255));
  return table;
}

ValueTable equalized(const Histogram& counts) {
  ValueTable table = identity();
  const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::int64_t last =
      *std::find_if(counts.rbegin(), counts.rend(), [](std::int64_t count) { return count > 0; });
  const std::int64_t step = (sum - last) / 255;
  if (step == 0) return table;
  std::int64_t before = step / 2;
  for (std::size_t value = 0; value < table.size(); ++value) {
    table[value] = static_cast<std::uint8_t>(std::min<std::int64_t>(before / step, 255));
    before += counts[value];
  }
  return table;
}

}  // namespace

void posterize(Image& image, int bits) {
  ValueTable table = identity();
  for (std::uint8_t& value : table) value = static_cast<std::uint8_t>(value & ~((1 << (8 - bits)) - 1));
  map_values(image, table);
}

void solarize(Image& image, double threshold) {
  ValueTable table = identity();
  for (std::uint8_t& value : table)
    if (value >= threshold) value = static_cast<std::uint8_t>(255 - value);
  map_values(image, table);
}

void autocontrast(Image& image) {
  const auto counts = histograms(image);
  map_values(image, std::array{stretched(counts[0]), stretched(counts[1]), stretched(counts[2])});
}

void equalize(Image& image) {
  const auto counts = histograms(image);
  map_values(image, std::array{equalized(counts[0]), equalized(counts[1]), equalized(counts[2])});
}

}  // namespace plexaura::augmentation
