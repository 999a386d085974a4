#include "models/zoo/pixel_scale.h"

#include <fmt/format.h>

namespace plexaura {

namespace {

// Far beyond what values from 0 to 1 need, and well within what a float can hold.
constexpr double largest = 1e6;
constexpr NumberRange mean_range{.minimum = -largest, .maximum = largest};
constexpr NumberRange stddev_range{.minimum = 1 / largest, .maximum = largest};

std::vector<double> read_channels(const Section& data, const char* key, std::vector<double> standard,
                                  NumberRange range) {
  std::vector<double> numbers = data.numbers_or(key, std::move(standard), range);
  if (numbers.size() != 3)
    throw data.error(key, fmt::format("has {} numbers; give three, for red, green and blue", numbers.size()));
  return numbers;
}

}  // namespace

PixelScale read_pixel_scale(const Section& data) {
  const std::string format = data.text_or("format", "");
  if (format == "idx")
    return {{data.number_or("mean", 0, mean_range)}, {data.number_or("stddev", 1, stddev_range)}};
  if (format == "image_folder")
    return {read_channels(data, "mean", {0.485, 0.456, 0.406}, mean_range),
            read_channels(data, "stddev", {0.229, 0.224, 0.225}, stddev_range)};
  return {};
}

}  // namespace plexaura
