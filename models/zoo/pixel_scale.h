#pragma once

#include <vector>

#include "core/ops/normalise_image.h"
#include "models/config/keys.h"

namespace plexaura {

// The values of the keys of the section `data` about pixels.
struct PixelOptions {
  std::string format = {};
  // For formats idx, npy, npz and hdf5.
  double mean = 0;
  double stddev = 1;
  // For formats image_folder, cifar and shards: values for red, green and blue.
  std::vector<double> means = {0.485, 0.456, 0.406};
  std::vector<double> stddevs = {0.229, 0.224, 0.225};
};

// Returns the keys `mean` and `stddev`, which need the key `format` before them.
std::vector<Key> pixel_keys(PixelOptions& options);

// Returns how images are normalised. Returns the default PixelScale if the format has no images. Throws
// UserError, with line and column in the section `data`, unless colour images have three numbers.
PixelScale pixel_scale_of(const PixelOptions& options, const Section& data);

// Reads the keys of pixel_keys() from the section `data` and returns the PixelScale, for a program that reads no other
// key there.
PixelScale read_pixel_scale(const Section& data);

}  // namespace plexaura
