#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace plexaura {

// Writes the images that a model returns as PNG files.
class PredictedImages {
 public:
  // The folder is created when the first image is written. `image` is the shape [channels, height, width] of
  // an image, with 1 or 3 channels. Throws UserError for other shapes.
  PredictedImages(std::filesystem::path folder, const Shape& image);

  // Throws UserError if the images of two of these files would have one path, or if one of the files is an image in the
  // folder.
  void check_names(const std::vector<std::string>& files) const;

  // Writes an image to FOLDER/NAME.png, where NAME is the sample's name without its folders and without .jpg,
  // .jpeg or .png, so that ImagePairs finds it as the target of its image. Replaces an older file. Returns
  // the path. `values` go from 0 to 1; others are limited to that. Grey images are written as RGB. Throws
  // UserError if this object has written a file with this path.
  std::string write(const std::string& name, std::span<const double> values);
  // Writes the classes of pixels [height, width] as write() does, as a grey image whose values are the class numbers.
  std::string write_classes(const std::string& name, std::span<const std::uint8_t> classes);

 private:
  std::string write_file(const std::string& name, std::span<const std::uint8_t> png);
  std::filesystem::path path_of(const std::string& name) const;

  std::filesystem::path folder_;
  Shape image_;
  std::set<std::filesystem::path> written_;
};

}  // namespace plexaura
