#pragma once

#include <vector>

#include "core/ops/normalise_image.h"
#include "models/config/keys.h"

namespace plexaura {

// Holds what the section `data` says of pixels.
struct PixelOptions {
  std::string format = {};
  double mean = 0;  // of format idx
  double stddev = 1;
  std::vector<double> means = {0.485, 0.456, 0.406};  // of format image_folder: red, green and blue
  std::vector<double> stddevs = {0.229, 0.224, 0.225};
};

// The keys `mean` and `stddev`, which need the key `format` before them.
std::vector<Key> pixel_keys(PixelOptions& options);

// Returns how images are normalised; the default PixelScale where the format has none. Throws UserError, with the line and column in
// the section `data`, unless images of colours have three numbers.
PixelScale pixel_scale_of(const PixelOptions& options, const Section& data);

// Reads the same from the section `data`, for a program that reads nothing else there.
PixelScale read_pixel_scale(const Section& data);

}  // namespace plexaura
