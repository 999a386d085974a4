#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "training/data/dataset.h"

namespace plexaura {

struct ImageFolderOptions {
  std::int64_t image_size = 224;  // pixels of both sides of a sample
  // Whether samples are random crops, each shape and place a function of (seed, epoch, index), half of them
  // flipped. Otherwise the shorter side is scaled to shorter_side_of() and the centre is taken.
  bool augment = false;
  double min_crop_scale = 0.08;  // of the image's area
  bool horizontal_flip = true;   // whether augmentation flips
};

// image_size * 256 / 224, rounded: to what the shorter side of an image is scaled that is not augmented.
std::int64_t shorter_side_of(const ImageFolderOptions& options);

// What lies among images and is not read.
struct IgnoredFiles {
  std::map<std::string, std::int64_t> pictures = {};  // by their format, such as "WebP"
  std::int64_t others = 0;
  std::int64_t beside_classes = 0;  // those called images that lie in no folder of a class

  IgnoredFiles& operator+=(const IgnoredFiles& more);
};

// Images in folders, root/CLASS/image. Classes are the folders in root, sorted by name, and samples the files in
// them and in folders within them that begin as JPEG or PNG does. They are sorted as torchvision does: by class, then by
// the path of their folder, then by name. Files called .jpg, .jpeg or .png are believed to be images, so that they need
// not be opened. Other files and names that begin with a dot are passed over. Only names are held in memory. A sample
// is uint8 [3, image_size, image_size], RGB, cut and scaled as torchvision's transforms do it: see crop.h and
// resample.h. The constructor throws UserError when root cannot be read, holds no folder or a link to a folder that leads
// nowhere or to one above it, or a folder holds not an image; read() when what is called an image is none, is broken, or
// is no regular file, naming it. Thread-safe.
class ImageFolderDataset final : public DatasetOf<std::uint8_t> {
 public:
  explicit ImageFolderDataset(const std::filesystem::path& root, const ImageFolderOptions& options = {});

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  Shape sample_shape() const override { return Shape{3, options_.image_size, options_.image_size}; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t index) const override {
    return files_[static_cast<std::size_t>(index)].label;
  }
  void read(std::int64_t index, const SampleContext& context, std::span<std::uint8_t> sample,
            std::int64_t& label) const override;

  // The file of a sample.
  std::filesystem::path path(std::int64_t index) const;
  // The same below the root, as "cat/1.jpg".
  std::string name(std::int64_t index) const;
  const IgnoredFiles& ignored() const { return ignored_; }

 private:
  struct File {
    std::string name;  // below the class's folder
    std::int64_t label = 0;
  };

  void add_class(const std::string& name);

  std::filesystem::path root_;
  ImageFolderOptions options_;
  std::vector<std::string> class_names_;
  std::vector<File> files_;
  IgnoredFiles ignored_;
};

// An image by its path, as a sample of an ImageFolderDataset without augmentation: uint8 [3, image_size,
// image_size]. Throws as ImageFolderDataset::read().
Tensor read_image(const std::filesystem::path& file, const ImageFolderOptions& options);

}  // namespace plexaura
