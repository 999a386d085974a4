#pragma once

#include <span>

#include "training/data/images/crop.h"
#include "training/data/images/image.h"

namespace plexaura {

// Computes the sample that `crop` describes, with the bits of the BILINEAR resize of Pillow up to version 12.
// (If the height shrinks more than the width, version 13 may filter columns first and then differs by 1.)
// Filters rows, then columns, with a triangle filter, and rounds to 8 bits after each. The filter is as wide
// as two new pixels, but at least two old ones, so it interpolates to enlarge and averages to shrink. Writes
// values with the shape [3, window.height, window.width]. Thread-safe.
void resample(const Image& image, const Crop& crop, std::span<std::uint8_t> planes);
// Returns the image that `crop` describes, in which each pixel has the values of the nearest pixel of the image, as with
// Pillow's NEAREST.
Image resample_nearest(const Image& image, const Crop& crop);
// Returns the sample of resample() as an image.
Image resample(const Image& image, const Crop& crop);

}  // namespace plexaura
