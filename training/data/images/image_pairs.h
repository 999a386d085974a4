#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "training/data/images/image_folder.h"
#include "training/data/sample_source.h"

namespace plexaura {

// The numbers that pixels of masks may have.
struct MaskOptions {
  std::int64_t classes = 2;                  // the class of a pixel is below this number
  std::optional<std::int64_t> ignored = {};  // another number that pixels may have, from 0 to 255
};

// Throws UserError, which names the operation, if masks cannot follow the augmentation of the images. `others` has
// the names of operations that the error proposes instead.
void check_mask_operations(const ImageFolderOptions& options, const MaskOptions& mask,
                           const std::vector<std::string>& others = {});

// Images with targets of their own: images, or masks with the class of each pixel. The target of IMAGES/PATH/NAME.jpg is
// TARGETS/PATH/NAME.png, or .jpg or .jpeg. Both have the same size. Other files of TARGETS are not read. Fields: uint8
// "samples" [3, image_size, image_size]; and uint8 "targets", which for images have the same shape, and for masks
// [image_size, image_size]. Both get the same augmentation: images with the same random numbers, masks by
// ImageOperation::apply_to_mask(). Samples are sorted as in an ImageFolderDataset. Thread-safe.
class ImagePairs final : public SampleSource {
 public:
  // `mask` is given if the targets are masks. Throws UserError if a folder cannot be read, if there is no image, if
  // an image has no target or several, if two images have one target, and for operations that masks cannot follow.
  ImagePairs(const std::filesystem::path& images, const std::filesystem::path& targets,
             const ImageFolderOptions& options, const std::optional<MaskOptions>& mask = {});
  // The pairs with these indices of another source, whose files were found.
  ImagePairs(const ImagePairs& whole, std::span<const std::int64_t> indices);

  std::int64_t size() const override { return static_cast<std::int64_t>(pairs_.size()); }
  std::vector<Field> fields() const override;
  // Throws UserError that names the file if a file of the pair cannot be read, if image and target differ in size, and if
  // a mask has a number that is no class.
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override;

  // Returns the paths of both files relative to their folders.
  std::string name(std::int64_t index) const;
  const IgnoredFiles& ignored() const { return ignored_; }

 private:
  struct FilePair {
    std::string image;
    std::string target;
  };

  ClassMask read_mask(const std::filesystem::path& path) const;

  std::filesystem::path images_;
  std::filesystem::path targets_;
  ImageFolderOptions options_;
  std::optional<MaskOptions> mask_;
  std::vector<FilePair> pairs_;
  IgnoredFiles ignored_;
};

}  // namespace plexaura
