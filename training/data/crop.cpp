#include "training/data/crop.h"

#include <algorithm>
#include <cmath>

namespace plexaura {

namespace {

constexpr double narrowest = 3.0 / 4.0;  // width / height
constexpr double widest = 4.0 / 3.0;

Box centred(double width, double height, double of_width, double of_height) {
  return {(of_width - width) / 2, (of_height - height) / 2, width, height};
}

Box random_box(double width, double height, double smallest_area, Random& random) {
  constexpr int tries = 10;
  for (int i = 0; i < tries; ++i) {
    const double area = width * height * random.uniform(smallest_area, 1);
    const double ratio = std::exp(random.uniform(std::log(narrowest), std::log(widest)));
    const double box_width = std::sqrt(area * ratio);
    const double box_height = std::sqrt(area / ratio);
    if (box_width <= width && box_height <= height) {
      const double left = random.uniform(0, width - box_width);
      return {left, random.uniform(0, height - box_height), box_width, box_height};
    }
  }
  return centred(std::min(width, height * widest), std::min(height, width / narrowest), width, height);
}

}  // namespace

Crop centre_crop(ImageSize size, double fraction) {
  const auto width = static_cast<double>(size.width);
  const auto height = static_cast<double>(size.height);
  const double side = fraction * std::min(width, height);
  return {centred(side, side, width, height), false};
}

Crop random_crop(ImageSize size, double smallest_area, bool may_mirror, Random& random) {
  Crop crop;
  crop.mirror = may_mirror && random.below(2) == 1;
  crop.box =
      random_box(static_cast<double>(size.width), static_cast<double>(size.height), smallest_area, random);
  return crop;
}

Box scaled(const Box& box, ImageSize from, ImageSize to) {
  const double across = static_cast<double>(to.width) / static_cast<double>(from.width);
  const double down = static_cast<double>(to.height) / static_cast<double>(from.height);
  return {box.left * across, box.top * down, box.width * across, box.height * down};
}

}  // namespace plexaura
