#include "training/data/augmentation/functional.h"

namespace plexaura::augmentation {

// Changes the sharpness. The smoothed image has the weight 5 for a pixel and 1 for each of its eight
// neighbours. The pixels at the edges are not smoothed.
void adjust_sharpness(Image& image, double factor) {
  constexpr int weights = 13;
  const Image before = image;
  const std::int64_t row = image.width * 3;
  for (std::int64_t y = 1; y + 1 < image.height; ++y)
    for (std::int64_t i = 3; i + 3 < row; ++i) {
      const std::uint8_t* const value = before.pixels.data() + y * row + i;
      int sum = 4 * *value;
      for (const std::int64_t line : {-row, std::int64_t{0}, row})
        sum += value[line - 3] + value[line] + value[line + 3];
      const int smooth = (2 * sum + weights) / (2 * weights);
      image.pixels[static_cast<std::size_t>(y * row + i)] = blend(smooth, *value, static_cast<float>(factor));
    }
}

}  // namespace plexaura::augmentation
