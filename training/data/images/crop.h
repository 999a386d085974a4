#pragma once

#include <cstdint>

#include "training/data/random.h"

namespace plexaura {

struct ImageSize {
  std::int64_t width = 0;
  std::int64_t height = 0;
};

// A part of an image, in pixels from its upper left corner.
struct Box {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
};

// The steps from an image to a sample: the part `source` is scaled to the size `scaled`; the sample is the
// part `window` of the result, optionally flipped horizontally.
struct Crop {
  Box source;
  ImageSize scaled;
  Box window;
  bool horizontal_flip = false;
};

// The functions below return the crops of torchvision's transforms, with the same rounding. The sample has `side` pixels
// on both sides.

// Resize(shorter_side), then CenterCrop(side); `shorter_side` is not below `side`.
Crop centre_crop(ImageSize size, std::int64_t shorter_side, std::int64_t side);

// RandomResizedCrop(side, scale=(smallest_area, 1)): a part with random area (uniform, as a share of the
// image's area), aspect ratio (width / height, log-uniform from 3/4 to 4/3) and position. If ten tries find
// no such part, because the image is too long, takes the largest part with a permitted ratio, in the centre.
// With `may_flip`, RandomHorizontalFlip() follows: flips with probability 1/2.
Crop random_crop(ImageSize size, std::int64_t side, double smallest_area, bool may_flip, Random& random);

// The permitted parts of random_box(): areas as shares of the image's, and ratios of width to height.
struct BoxRule {
  double least_area = 0.08;
  double most_area = 1;
  double narrowest = 3.0 / 4.0;
  double widest = 4.0 / 3.0;
};

// Draws a part of an image as random_crop() does, but within the limits of `rule`.
Box random_box(ImageSize size, const BoxRule& rule, Random& random);

}  // namespace plexaura
