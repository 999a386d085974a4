#include "training/data/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace plexaura {

namespace {

// The old pixels that make one new pixel along an axis: first, first + 1, … with weights that sum to 1.
struct Taps {
  std::int64_t first = 0;
  std::vector<float> weights;
};

Taps taps_around(double centre, double radius, std::int64_t pixels) {
  Taps taps;
  taps.first = std::clamp<std::int64_t>(std::llround(std::floor(centre - radius)), 0, pixels - 1);
  const auto last =
      std::clamp<std::int64_t>(std::llround(std::floor(centre + radius)), taps.first, pixels - 1);
  float sum = 0;
  for (std::int64_t pixel = taps.first; pixel <= last; ++pixel) {
    const double distance = std::abs(static_cast<double>(pixel) + 0.5 - centre);
    taps.weights.push_back(static_cast<float>(std::max(0.0, 1 - distance / radius)));
    sum += taps.weights.back();
  }
  for (float& weight : taps.weights) weight /= sum;
  return taps;
}

// Along an axis of `pixels`, the part from `start` of `length` becomes `count` new pixels.
std::vector<Taps> make_taps(std::int64_t pixels, double start, double length, std::int64_t count) {
  const double step = length / static_cast<double>(count);
  const double radius = std::max(1.0, step);
  std::vector<Taps> taps;
  for (std::int64_t i = 0; i < count; ++i) {
    const double centre = start + (static_cast<double>(i) + 0.5) * step;
    taps.push_back(taps_around(std::clamp(centre, 0.5, static_cast<double>(pixels) - 0.5), radius, pixels));
  }
  return taps;
}

// One row of the picture, [width, 3], as [taps, 3].
void resample_row(const std::uint8_t* row, const std::vector<Taps>& taps, float* result) {
  for (const Taps& tap : taps) {
    float sums[3] = {0, 0, 0};
    const std::uint8_t* pixel = row + tap.first * 3;
    for (const float weight : tap.weights)
      for (float& sum : sums) sum += weight * static_cast<float>(*pixel++);
    result = std::copy(std::begin(sums), std::end(sums), result);
  }
}

}  // namespace

void resample(const Image& image, const Box& box, std::int64_t width, std::int64_t height, bool mirror,
              std::span<float> planes) {
  std::vector<Taps> across = make_taps(image.width, box.left, box.width, width);
  const std::vector<Taps> down = make_taps(image.height, box.top, box.height, height);
  if (mirror) std::ranges::reverse(across);

  const std::int64_t first_row = down.front().first;
  const auto row_count =
      down.back().first + static_cast<std::int64_t>(down.back().weights.size()) - first_row;
  const std::int64_t row_values = width * 3;
  std::vector<float> rows(static_cast<std::size_t>(row_count * row_values));
  for (std::int64_t row = 0; row < row_count; ++row)
    resample_row(image.pixels.data() + (first_row + row) * image.width * 3, across,
                 rows.data() + row * row_values);

  std::vector<float> line(static_cast<std::size_t>(row_values));
  for (std::int64_t y = 0; y < height; ++y) {
    const Taps& tap = down[static_cast<std::size_t>(y)];
    std::ranges::fill(line, 0.0F);
    const float* source = rows.data() + (tap.first - first_row) * row_values;
    for (const float weight : tap.weights)
      for (float& value : line) value += weight * *source++;
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t channel = 0; channel < 3; ++channel)
        planes[static_cast<std::size_t>((channel * height + y) * width + x)] =
            line[static_cast<std::size_t>(x * 3 + channel)];
  }
}

}  // namespace plexaura
