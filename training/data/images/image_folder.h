#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "training/data/dataset.h"
#include "training/data/images/image.h"
#include "training/data/images/image_list.h"
#include "training/data/images/image_operation.h"

namespace plexaura {

struct ImageFolderOptions {
  std::int64_t image_size = 224;  // pixels of each side of a sample
  // If true, samples are random crops whose shape and place are functions of (seed, epoch, index), and half
  // of them are flipped: see also `horizontal_flip` and `operations`. If false, the shorter side is scaled to
  // shorter_side_of() and the centre is taken.
  bool augment = false;
  double min_crop_scale = 0.08;  // smallest area of a crop, as a share of the image's area
  bool horizontal_flip = true;   // true: augmentation flips half of the samples
  // If not empty, augmentation applies these instead of the random crop and the flip. If none of them changes the size,
  // they begin with the crop that is made without augmentation. The images that they produce have image_size pixels on
  // each side.
  ImageOperations operations = {};
  // The size to which the shorter side of an image is scaled without augmentation, not below image_size. Default:
  // image_size * 256 / 224, rounded.
  std::optional<std::int64_t> resize_size = {};
};

// Returns the size to which the shorter side of an image is scaled without augmentation.
std::int64_t shorter_side_of(const ImageFolderOptions& options);

// Images in folders, root/CLASS/image. Classes are the folders in root, sorted by name. Samples are the files
// in these folders, and in folders within them, that begin like JPEG or PNG. They are sorted as torchvision
// does: by class, then by the path of their folder, then by name. Files named .jpg, .jpeg or .png count as
// images without being opened. Other files, and names that begin with a dot, are ignored. Only names are kept
// in memory. A sample is uint8 [3, image_size, image_size], RGB, cropped and scaled as torchvision's
// transforms do: see crop.h and resample.h. The constructor throws UserError if root cannot be read, contains
// no folder, or contains a link to a folder that does not exist or that contains the link, or if the folder
// of a class contains no image. read() throws UserError that names the file if it is no image, is damaged, or
// is not a regular file. Thread-safe.
class ImageFolderDataset final : public DatasetOf<std::uint8_t> {
 public:
  explicit ImageFolderDataset(const std::filesystem::path& root, const ImageFolderOptions& options = {});
  // Opens the files of another dataset with other options.
  ImageFolderDataset(const ImageFolderDataset& files, const ImageFolderOptions& options);

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  Shape sample_shape() const override { return Shape{3, options_.image_size, options_.image_size}; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t index) const override {
    return files_[static_cast<std::size_t>(index)].label;
  }
  void read(std::int64_t index, const SampleContext& context, std::span<std::uint8_t> sample,
            std::int64_t& label) const override;

  // Returns the path of a sample's file.
  std::filesystem::path path(std::int64_t index) const;
  // Returns the path relative to the root, such as "cat/1.jpg".
  std::string name(std::int64_t index) const;
  const IgnoredFiles& ignored() const { return ignored_; }

 private:
  struct File {
    std::string name;  // relative to the folder of the class
    std::int64_t label = 0;
  };

  void add_class(const std::string& name);

  std::filesystem::path root_;
  ImageFolderOptions options_;
  std::vector<std::string> class_names_;
  std::vector<File> files_;
  IgnoredFiles ignored_;
};

// Throws UserError that names the folder for options that are not permitted.
void check_image_options(const std::filesystem::path& root, const ImageFolderOptions& options);

// Makes a sample of an ImageFolderDataset from the image with this index: uint8 [3, image_size, image_size]. `mask`,
// the mask of the image, has the same size, and gets the same crops and moves. It may be null.
void make_sample(Image image, const ImageFolderOptions& options, const SampleContext& context,
                 std::int64_t index, std::span<std::uint8_t> sample, ClassMask* mask = nullptr);

// Reads one image as a sample of an ImageFolderDataset without augmentation: uint8 [3, image_size,
// image_size]. Throws as ImageFolderDataset::read() does.
Tensor read_image(const std::filesystem::path& file, const ImageFolderOptions& options);

}  // namespace plexaura
