#pragma once

#include <cstdint>

#include "training/data/random.h"

namespace plexaura {

struct ImageSize {
  std::int64_t width = 0;
  std::int64_t height = 0;
};

// A part of a picture, in pixels from its upper left corner.
struct Box {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
};

// How a picture becomes a sample: `source` is cut out and scaled to the size `scaled`, of which `window` is
// the sample, mirrored left to right or not.
struct Crop {
  Box source;
  ImageSize scaled;
  Box window;
  bool mirror = false;
};

// The crops of torchvision's transforms, with its rounding. The sample has `side` pixels on both sides.

// Resize(shorter_side), then CenterCrop(side); `shorter_side` is not below `side`.
Crop centre_crop(ImageSize size, std::int64_t shorter_side, std::int64_t side);

// RandomResizedCrop(side, scale=(smallest_area, 1)): a part of random area (uniform, as a share of the
// picture's), shape (width / height, log-uniform from 3/4 to 4/3) and place. A picture so long that ten tries
// find none gives the largest part of a permitted shape, in the middle. Where `may_mirror`, then
// RandomHorizontalFlip(): half of all are mirrored.
Crop random_crop(ImageSize size, std::int64_t side, double smallest_area, bool may_mirror, Random& random);

}  // namespace plexaura
