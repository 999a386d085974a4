#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "training/data/dataset.h"
#include "training/data/images/image_folder.h"
#include "training/data/shards/shard_index.h"

namespace plexaura {

// The files of a part of packed shards. The index is in memory, 24 bytes for each sample; records are read at
// their offsets. Thread-safe.
class ShardFiles {
 public:
  // Reads the index, and opens the shards. Throws UserError that names the file if one is missing, if the index is
  // damaged, and if a shard is shorter or longer than the index says, or belongs to another index.
  ShardFiles(const std::filesystem::path& folder, const std::string& part);

  const ShardContents& contents() const { return index_.contents; }
  std::int64_t size() const { return std::ssize(index_.records); }
  std::int64_t label(std::int64_t index) const { return record(index).label; }
  std::size_t bytes(std::int64_t index) const { return record(index).bytes; }
  // Fills `into`, which has bytes(index) bytes, with a record. Throws UserError that names the file, the record
  // and its offset if the bytes do not have its checksum.
  void read(std::int64_t index, std::span<std::byte> into) const;
  // Returns the place of a record for errors: "a/train-00000.shard: record 3 (offset 140)".
  std::string place(std::int64_t index) const;
  // Returns a hash that changes if a sample, a label or the order changes.
  std::uint64_t identity() const;

 private:
  const ShardRecord& record(std::int64_t index) const {
    return index_.records[static_cast<std::size_t>(index)];
  }

  ShardIndex index_;
  std::vector<ByteRange> shards_;
};

// The images of shards with image files: the samples of an ImageFolderDataset with the same files and options.
// read() throws UserError that names the record if an image is damaged. Thread-safe.
class ShardedImages final : public DatasetOf<std::uint8_t> {
 public:
  // Throws UserError unless the records are image files and image_size is positive.
  ShardedImages(std::shared_ptr<const ShardFiles> files, ImageFolderOptions options);

  std::int64_t size() const override { return files_->size(); }
  Shape sample_shape() const override { return Shape{3, options_.image_size, options_.image_size}; }
  const std::vector<std::string>& class_names() const override { return files_->contents().classes; }
  std::int64_t label(std::int64_t index) const override { return files_->label(index); }
  void read(std::int64_t index, const SampleContext& context, std::span<std::uint8_t> sample,
            std::int64_t& label) const override;

 private:
  std::shared_ptr<const ShardFiles> files_;
  ImageFolderOptions options_;
};

// The samples of shards whose records are samples, of type T. Thread-safe.
template <class T>
class ShardedSamples final : public DatasetOf<T> {
 public:
  explicit ShardedSamples(std::shared_ptr<const ShardFiles> files) : files_(std::move(files)) {}

  std::int64_t size() const override { return files_->size(); }
  Shape sample_shape() const override { return files_->contents().sample.shape; }
  const std::vector<std::string>& class_names() const override { return files_->contents().classes; }
  std::int64_t label(std::int64_t index) const override { return files_->label(index); }
  void read(std::int64_t index, const SampleContext& /*context*/, std::span<T> sample,
            std::int64_t& label) const override {
    label = this->label(index);
    files_->read(index, std::as_writable_bytes(sample));
  }

 private:
  std::shared_ptr<const ShardFiles> files_;
};

}  // namespace plexaura
