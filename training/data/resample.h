#pragma once

#include <cstdint>
#include <span>

#include "training/data/image.h"

namespace plexaura {

// A part of a picture, in pixels from its upper left corner; edges may lie within pixels.
struct Box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

// Scales a part of a picture to width x height by a triangle filter as wide as two steps between the new
// pixels, two old pixels at least: bilinear interpolation when it grows, an average without aliasing when it
// shrinks. Writes [3, height, width] values from 0 to 255, mirrored left to right on wish. Thread-safe.
void resample(const Image& image, const Box& box, std::int64_t width, std::int64_t height, bool mirror,
              std::span<float> planes);

}  // namespace plexaura
