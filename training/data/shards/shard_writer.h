#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "training/data/shards/shard_index.h"
#include "training/files/file.h"

namespace plexaura {

// Prepares a folder for shards. Write the index of the training samples last, so that data which were packed
// in part are not read: an index of validation samples is removed if there is none of training samples. Throws UserError
// if the folder has the index of training samples, and as throw_write_error() does.
void prepare_shards(const std::filesystem::path& folder);

// Writes the shards and the index of a part of the data, such as "train". Each file appears completely or not
// at all, the index last: without it the shards are not read. Throws as AtomicFile does.
class ShardWriter {
 public:
  // Begins a new shard if a record would make the present one longer than `shard_bytes`.
  ShardWriter(std::filesystem::path folder, std::string part, ShardContents contents,
              std::uint64_t shard_bytes);

  // Appends a sample. Throws UserError for a record of 4 GiB or more.
  void add(std::span<const std::byte> record, std::int64_t label);
  // Writes the last shard and the index. Must be called once, after the last sample. Throws UserError if there is no
  // sample.
  void finish();

  const ShardIndex& index() const { return index_; }

 private:
  void end_shard();

  std::filesystem::path folder_;
  std::string part_;
  std::uint64_t shard_bytes_;
  ShardIndex index_;
  std::optional<AtomicFile> file_;  // file of the present shard
};

}  // namespace plexaura
