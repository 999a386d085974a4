#include "models/zoo/pixel_scale.h"

#include <algorithm>
#include <fmt/format.h>

namespace plexaura {

namespace {

// The largest number that a mean or a deviation may be. It is much larger than values from 0 to 1 need, and
// much smaller than the largest float.
constexpr double largest = 1e6;
constexpr NumberRange mean_range{.minimum = -largest, .maximum = largest};
constexpr NumberRange stddev_range{.minimum = 1 / largest, .maximum = largest};

void require_three(const Section& data, const char* key, const std::vector<double>& numbers) {
  if (numbers.size() != 3)
    throw data.error(key, fmt::format("has {} numbers; give three, for red, green and blue", numbers.size()));
}

std::vector<std::string> coloured_formats() { return {"image_folder", "cifar", "shards"}; }

}  // namespace

std::vector<Key> pixel_keys(PixelOptions& options) {
  const Need grey{.key = "format", .values = {"idx", "npy", "npz", "hdf5"}};
  const Need coloured{.key = "format", .values = coloured_formats()};
  return {
      {.name = "mean",
       .into = &options.mean,
       .range = mean_range,
       .needs = grey,
       .meaning = "mean that is subtracted from every value, after the division of bytes by 255"},
      {.name = "stddev",
       .into = &options.stddev,
       .range = stddev_range,
       .needs = grey,
       .meaning = "standard deviation by which every value is then divided"},
      {.name = "mean",
       .into = &options.means,
       .range = mean_range,
       .needs = coloured,
       .meaning = "mean of red, green and blue on a scale from 0 to 1; the default is ImageNet's, which "
                  "published weights expect"},
      {.name = "stddev",
       .into = &options.stddevs,
       .range = stddev_range,
       .needs = coloured,
       .meaning = "standard deviation, likewise: a value becomes (value / 255 − mean) / stddev"},
  };
}

PixelScale pixel_scale_of(const PixelOptions& options, const Section& data) {
  const std::vector<std::string> coloured = coloured_formats();
  if (std::ranges::find(coloured, options.format) == coloured.end())
    return {{options.mean}, {options.stddev}};
  require_three(data, "mean", options.means);
  require_three(data, "stddev", options.stddevs);
  return {options.means, options.stddevs};
}

PixelScale read_pixel_scale(const Section& data) {
  PixelOptions options;
  std::vector<Key> keys{{.name = "format", .into = &options.format}};
  for (Key& key : pixel_keys(options)) keys.push_back(std::move(key));
  read_keys(data, keys);
  return pixel_scale_of(options, data);
}

}  // namespace plexaura
