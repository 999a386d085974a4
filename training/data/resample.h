#pragma once

#include <span>

#include "training/data/crop.h"
#include "training/data/image.h"

namespace plexaura {

// Makes the sample that `crop` describes, as the resize of Pillow up to 12 does with BILINEAR, to the bit (13
// may take columns first where the height shrinks most, and then differs by 1): a triangle filter as wide as
// two steps between the new pixels, two old pixels at least, first along rows, then along columns, rounded to
// 8 bits after each. So it interpolates where it grows and averages where it shrinks. Writes [3,
// window.height, window.width] whole numbers from 0 to 255. Thread-safe.
void resample(const Image& image, const Crop& crop, std::span<float> planes);

}  // namespace plexaura
