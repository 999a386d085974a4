#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "training/data/dataset.h"

namespace plexaura {

// The labels of CIFAR-100: 100 classes, or the 20 groups of five classes each. CIFAR-10 has only `fine` ones.
enum class CifarLabels : std::uint8_t { fine, coarse };

// The images of CIFAR to train on, or those to test.
enum class CifarPart : std::uint8_t { train, test };

// The images of CIFAR-10 or CIFAR-100 in their binary version, in a folder with the files of the archive:
// data_batch_1.bin to data_batch_5.bin, test_batch.bin and batches.meta.txt; or train.bin, test.bin,
// fine_label_names.txt and coarse_label_names.txt. Read into memory at construction. A sample is uint8
// [3, 32, 32], RGB. The classes have the names and the order of the text file. The constructor throws UserError
// that names the file, and the record and offset if one is wrong, if a file is missing, empty, or no whole
// number of records, and for a label without a name. Thread-safe.
class CifarDataset final : public DatasetOf<std::uint8_t> {
 public:
  CifarDataset(const std::filesystem::path& folder, CifarPart part, CifarLabels labels = CifarLabels::fine);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  bool in_memory() const override { return true; }
  Shape sample_shape() const override;
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }
  void read(std::int64_t index, const SampleContext& context, std::span<std::uint8_t> sample,
            std::int64_t& label) const override;

 private:
  // A record begins with `label_bytes` bytes of labels; byte `label_at` of these is the label. The pixels follow.
  void add_file(const std::filesystem::path& file, std::size_t label_bytes, std::size_t label_at);

  std::vector<std::string> class_names_;
  std::vector<std::uint8_t> pixels_;  // [size, 3, 32, 32]
  std::vector<std::uint8_t> labels_;
};

}  // namespace plexaura
