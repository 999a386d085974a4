#include "training/data/images/crop.h"

#include <cmath>

namespace plexaura {

namespace {

// Rounds to the nearest whole number, and halves to the even one.
std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

// Returns the largest box with a permitted aspect ratio, in the centre.
Box largest_box(ImageSize size, const BoxRule& rule) {
  const auto width = static_cast<double>(size.width);
  const auto height = static_cast<double>(size.height);
  Box box{.width = size.width, .height = size.height};
  if (width / height < rule.narrowest) box.height = rounded(width / rule.narrowest);
  if (width / height > rule.widest) box.width = rounded(height * rule.widest);
  box.left = (size.width - box.width) / 2;
  box.top = (size.height - box.height) / 2;
  return box;
}

}  // namespace

Crop centre_crop(ImageSize size, std::int64_t shorter_side, std::int64_t side) {
  const ImageSize scaled = size.width <= size.height
                               ? ImageSize{shorter_side, shorter_side * size.height / size.width}
                               : ImageSize{shorter_side * size.width / size.height, shorter_side};
  const auto offset = [&](std::int64_t whole) { return rounded(static_cast<double>(whole - side) / 2); };
  return {.source = {0, 0, size.width, size.height},
          .scaled = scaled,
          .window = {offset(scaled.width), offset(scaled.height), side, side}};
}

Box random_box(ImageSize size, const BoxRule& rule, Random& random) {
  constexpr int tries = 10;
  for (int i = 0; i < tries; ++i) {
    const double area =
        static_cast<double>(size.width * size.height) * random.uniform(rule.least_area, rule.most_area);
    const double ratio = std::exp(random.uniform(std::log(rule.narrowest), std::log(rule.widest)));
    Box box{.width = rounded(std::sqrt(area * ratio)), .height = rounded(std::sqrt(area / ratio))};
    if (box.width < 1 || box.width > size.width || box.height < 1 || box.height > size.height) continue;
    box.left =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(size.width - box.width + 1)));
    box.top =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(size.height - box.height + 1)));
    return box;
  }
  return largest_box(size, rule);
}

Crop random_crop(ImageSize size, std::int64_t side, double smallest_area, bool may_flip, Random& random) {
  const bool horizontal_flip = may_flip && random.below(2) == 1;
  return {.source = random_box(size, {.least_area = smallest_area}, random),
          .scaled = {side, side},
          .window = {0, 0, side, side},
          .horizontal_flip = horizontal_flip};
}

}  // namespace plexaura
