#include <cmath>

#include "training/data/augmentation/operations.h"

namespace plexaura::augmentation {

void erase(Image& image, const Box& box, Colour colour) {
  for (std::int64_t y = box.top; y < box.top + box.height; ++y)
    for (std::int64_t x = box.left; x < box.left + box.width; ++x)
      std::copy(colour.begin(), colour.end(), image.pixels.begin() + (y * image.width + x) * 3);
}

namespace {

void erase_randomly(Image& image, const Box& box, Random& random) {
  for (std::int64_t y = box.top; y < box.top + box.height; ++y)
    for (std::int64_t i = box.left * 3; i < (box.left + box.width) * 3; ++i)
      image.pixels[static_cast<std::size_t>(y * image.width * 3 + i)] =
          static_cast<std::uint8_t>(random.below(256));
}

}  // namespace

RandomErasing::RandomErasing(const Options& options) : options_(options) {
  constexpr double most_ratio = 1000;
  checked_probability(name(), options.p);
  checked_span(name(), "scale", options.scale, 0, 1);
  checked_span(name(), "ratio", options.ratio, 1 / most_ratio, most_ratio);
}

// Erases a rectangle with probability p. Leaves the image unchanged if ten tries find no rectangle that is smaller
// than the image.
void RandomErasing::apply(Image& image, Random& random) const {
  constexpr int tries = 10;
  if (random.uniform() >= options_.p) return;
  for (int i = 0; i < tries; ++i) {
    const double area = static_cast<double>(image.width * image.height) * options_.scale.draw(random);
    const double ratio =
        std::exp(random.uniform(std::log(options_.ratio.low), std::log(options_.ratio.high)));
    Box box{.width = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area / ratio))),
            .height = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * ratio)))};
    if (box.width >= image.width || box.height >= image.height) continue;
    box.top =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(image.height - box.height + 1)));
    box.left =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(image.width - box.width + 1)));
    if (options_.value)
      erase(image, box, *options_.value);
    else
      erase_randomly(image, box, random);
    return;
  }
}

}  // namespace plexaura::augmentation
