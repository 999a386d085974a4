#pragma once

#include <span>

#include "training/data/images/crop.h"
#include "training/data/images/image.h"

namespace plexaura {

// Makes the sample that `crop` describes, bit for bit as the BILINEAR resize of Pillow up to version 12. (If
// the height shrinks most, version 13 may filter columns first and then differs by 1.) A triangle filter runs
// along rows, then along columns, and rounds to 8 bits after each. It is as wide as two new pixels but at
// least two old ones, so it interpolates to enlarge and averages to shrink. Writes values of shape
// [3, window.height, window.width]. Thread-safe.
void resample(const Image& image, const Crop& crop, std::span<std::uint8_t> planes);

}  // namespace plexaura
