#include "tests/training/data/data_support.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

namespace plexaura::testing {

std::optional<std::filesystem::path> real_data() {
  if (const char* folder = std::getenv("PLEXAURA_DATA")) return folder;
  MESSAGE("skipped: PLEXAURA_DATA is not set");
  return std::nullopt;
}

Image two_colours(std::int64_t width, std::int64_t height, std::array<std::uint8_t, 3> left,
                  std::array<std::uint8_t, 3> right) {
  Image image{width, height, {}};
  for (std::int64_t i = 0; i < width * height; ++i) {
    const auto& colour = i % width < width / 2 ? left : right;
    image.pixels.insert(image.pixels.end(), colour.begin(), colour.end());
  }
  return image;
}

CountingDataset::CountingDataset(std::int64_t size, std::vector<std::int64_t> broken)
    : size_(size), broken_(std::move(broken)) {}

void CountingDataset::read(std::int64_t index, const SampleContext& context, std::span<float> sample,
                           std::int64_t& label) const {
  if (std::ranges::find(broken_, index) != broken_.end())
    throw UserError(fmt::format("sample {} is broken", index));
  sample[0] = static_cast<float>(index);
  sample[1] = static_cast<float>(context.epoch);
  label = index % 3;
}

}  // namespace plexaura::testing
