#include "training/data/images/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace plexaura {

namespace {

constexpr int fraction_bits = 22;
constexpr std::int32_t half = 1 << (fraction_bits - 1);

// The old pixels that contribute to one new pixel along an axis: first, first + 1, …, with weights in units
// of 2^-22.
struct Taps {
  std::int64_t first = 0;
  std::vector<std::int32_t> weights;

  std::int64_t end() const { return first + static_cast<std::int64_t>(weights.size()); }
};

// Adds 0.5 and truncates, as Pillow does. For a negative first pixel this is not rounding, but it becomes 0
// in any case.
// NOLINTBEGIN(bugprone-incorrect-roundings)
Taps taps_around(double centre, double radius, std::int64_t pixels) {
  Taps taps;
  taps.first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - radius + 0.5), 0);
  const std::int64_t end = std::min(static_cast<std::int64_t>(centre + radius + 0.5), pixels);
  const double inverse = 1 / radius;
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t pixel = taps.first; pixel < end; ++pixel) {
    const double distance = std::abs((static_cast<double>(pixel) - centre + 0.5) * inverse);
    weights.push_back(std::max(0.0, 1 - distance));
    sum += weights.back();
  }
  for (const double weight : weights)
    taps.weights.push_back(static_cast<std::int32_t>(weight / sum * (1 << fraction_bits) + 0.5));
  return taps;
}
// NOLINTEND(bugprone-incorrect-roundings)

// Scales an axis of `pixels` pixels to `scaled` pixels. Returns the taps of `count` new pixels, beginning
// with `first`.
std::vector<Taps> make_taps(std::int64_t pixels, std::int64_t scaled, std::int64_t first,
                            std::int64_t count) {
  const double step = static_cast<double>(pixels) / static_cast<double>(scaled);
  std::vector<Taps> taps;
  for (std::int64_t i = first; i < first + count; ++i)
    taps.push_back(taps_around((static_cast<double>(i) + 0.5) * step, std::max(1.0, step), pixels));
  return taps;
}

// Limits the result to 255. The weights are rounded, so the sum of very many weights may be above 1 by enough
// that a white pixel would become 256.
std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::min(sum >> fraction_bits, 255));
}

// Resamples one row of the image, [width, 3], to [taps, 3].
void resample_row(const std::uint8_t* row, const std::vector<Taps>& taps, std::uint8_t* result) {
  for (const Taps& tap : taps) {
    std::int32_t sums[3] = {half, half, half};
    const std::uint8_t* pixel = row + tap.first * 3;
    for (const std::int32_t weight : tap.weights)
      for (std::int32_t& sum : sums) sum += weight * *pixel++;
    result = std::transform(std::begin(sums), std::end(sums), result, to_byte);
  }
}

// Calls store(x, y, values) for each pixel of the sample. to_byte() rounds the three values.
template <class Store>
void resample_to(const Image& image, const Crop& crop, const Store& store) {
  const auto& [source, scaled, window, horizontal_flip] = crop;
  std::vector<Taps> across = make_taps(source.width, scaled.width, window.left, window.width);
  const std::vector<Taps> down = make_taps(source.height, scaled.height, window.top, window.height);
  if (horizontal_flip) std::ranges::reverse(across);

  const std::int64_t first_row = down.front().first;
  const std::int64_t row_count = down.back().end() - first_row;
  const std::int64_t row_values = window.width * 3;
  const std::uint8_t* corner = image.pixels.data() + (source.top * image.width + source.left) * 3;
  std::vector<std::uint8_t> rows(static_cast<std::size_t>(row_count * row_values));
  for (std::int64_t row = 0; row < row_count; ++row)
    resample_row(corner + (first_row + row) * image.width * 3, across, rows.data() + row * row_values);

  std::vector<std::int32_t> line(static_cast<std::size_t>(row_values));
  for (std::int64_t y = 0; y < window.height; ++y) {
    const Taps& tap = down[static_cast<std::size_t>(y)];
    std::ranges::fill(line, half);
    const std::uint8_t* value = rows.data() + (tap.first - first_row) * row_values;
    for (const std::int32_t weight : tap.weights)
      for (std::int32_t& sum : line) sum += weight * *value++;
    for (std::int64_t x = 0; x < window.width; ++x) store(x, y, line.data() + x * 3);
  }
}

}  // namespace

void resample(const Image& image, const Crop& crop, std::span<std::uint8_t> planes) {
  const std::int64_t width = crop.window.width;
  const std::int64_t plane = width * crop.window.height;
  resample_to(image, crop, [&](std::int64_t x, std::int64_t y, const std::int32_t* values) {
    for (std::int64_t channel = 0; channel < 3; ++channel)
      planes[static_cast<std::size_t>(channel * plane + y * width + x)] = to_byte(values[channel]);
  });
}

Image resample_nearest(const Image& image, const Crop& crop) {
  const auto& [source, scaled, window, horizontal_flip] = crop;
  Image result{window.width, window.height, {}};
  result.pixels.reserve(static_cast<std::size_t>(result.width * result.height * 3));
  const auto nearest = [](std::int64_t pixel, std::int64_t pixels, std::int64_t scaled_pixels) {
    return (2 * pixel + 1) * pixels / (2 * scaled_pixels);
  };
  for (std::int64_t y = 0; y < window.height; ++y) {
    const std::int64_t row = source.top + nearest(window.top + y, source.height, scaled.height);
    for (std::int64_t i = 0; i < window.width; ++i) {
      const std::int64_t x = horizontal_flip ? window.width - 1 - i : i;
      const std::int64_t column = source.left + nearest(window.left + x, source.width, scaled.width);
      const std::uint8_t* const from = image.pixels.data() + (row * image.width + column) * 3;
      result.pixels.insert(result.pixels.end(), from, from + 3);
    }
  }
  return result;
}

Image resample(const Image& image, const Crop& crop) {
  Image result{crop.window.width, crop.window.height, {}};
  result.pixels.resize(static_cast<std::size_t>(result.width * result.height * 3));
  resample_to(image, crop, [&](std::int64_t x, std::int64_t y, const std::int32_t* values) {
    std::transform(values, values + 3, result.pixels.data() + (y * result.width + x) * 3, to_byte);
  });
  return result;
}

}  // namespace plexaura
