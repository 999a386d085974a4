#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "training/data/augmentation/operations.h"

namespace plexaura::augmentation {

ColorJitter::ColorJitter(const Options& options) : options_(options) {
  constexpr double most = 1000;
  for (const auto& [option, value, limit] :
       {std::tuple{"brightness", options.brightness, most}, std::tuple{"contrast", options.contrast, most},
        std::tuple{"saturation", options.saturation, most}, std::tuple{"hue", options.hue, 0.5}})
    if (!(value >= 0 && value <= limit))
      throw UserError(
          fmt::format("color_jitter: {} is {}; give a number from 0 to {}", option, value, limit));
}

void ColorJitter::apply(Image& image, Random& random) const {
  using Adjust = void (*)(Image&, double);
  const auto factor = [&](double jitter) { return random.uniform(std::max(0.0, 1 - jitter), 1 + jitter); };
  // Draws all numbers, also unused ones, so that the random numbers of the next operations do not depend on
  // the options.
  std::array<std::pair<Adjust, double>, 4> changes{
      {{adjust_brightness, factor(options_.brightness)},
       {adjust_contrast, factor(options_.contrast)},
       {adjust_saturation, factor(options_.saturation)},
       {adjust_hue, random.uniform(-options_.hue, options_.hue)}}};
  const std::array<bool, 4> applies{options_.brightness > 0, options_.contrast > 0, options_.saturation > 0,
                                    options_.hue > 0};
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);
  for (const std::size_t i : order)
    if (applies[i]) changes[i].first(image, changes[i].second);
}

}  // namespace plexaura::augmentation
