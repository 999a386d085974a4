#include <algorithm>

#include "training/data/augmentation/operations.h"

namespace plexaura::augmentation {

void rgb_to_grayscale(Image& image) {
  for (std::size_t i = 0; i < image.pixels.size(); i += 3)
    std::fill_n(image.pixels.data() + i, 3, luma(image.pixels.data() + i));
}

RandomGrayscale::RandomGrayscale(double p) : p_(checked_probability("grayscale", p)) {}

void RandomGrayscale::apply(Image& image, Random& random) const {
  if (random.uniform() < p_) rgb_to_grayscale(image);
}

}  // namespace plexaura::augmentation
