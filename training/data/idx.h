#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "training/data/dataset.h"

namespace plexaura {

struct IdxOptions {
  std::int64_t classes = 10;
};

// Grey images and their labels in the IDX files of MNIST (unsigned bytes; magic numbers 2051 and 2049). The
// constructor reads both files into memory. A file may be plain or gzipped; its content decides. A sample is
// uint8 [1, rows, columns] with the bytes of the file. Classes are named "0", "1", …. Thread-safe.
//
// The constructor throws UserError that names the file if `classes` is not positive, if a file is not a
// regular file, if it has another magic number, if it is shorter or longer than its header says, if there are
// no images or their sides are not from 1 to 65536, or if the numbers of images and labels differ. For a label
// that is not below `classes`, the error also names the record.
class IdxDataset final : public DatasetOf<std::uint8_t> {
 public:
  IdxDataset(const std::filesystem::path& images, const std::filesystem::path& labels,
             const IdxOptions& options = {});

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  bool in_memory() const override { return true; }
  Shape sample_shape() const override { return Shape{1, rows_, columns_}; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }
  void read(std::int64_t index, const SampleContext& context, std::span<std::uint8_t> sample,
            std::int64_t& label) const override;

 private:
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::vector<std::string> class_names_;
  std::vector<std::uint8_t> pixels_;  // [size, rows, columns]
  std::vector<std::uint8_t> labels_;
};

// Returns the images of an IDX file, uint8 [images, 1, rows, columns]. Throws what IdxDataset throws for its images.
Tensor read_idx_images(const std::filesystem::path& path);

}  // namespace plexaura
