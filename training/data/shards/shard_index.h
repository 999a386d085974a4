#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/shape.h"
#include "training/data/arrays/byte_range.h"

namespace plexaura {

// The contents of the records of packed shards: image files (JPEG or PNG); or samples as they are in memory.
enum class RecordKind : std::uint8_t { image_file, sample };

// The facts that are true of all samples of a part of the data, such as "train".
struct ShardContents {
  RecordKind kind = RecordKind::sample;
  // Type of a record that is a sample: uint8 or float32; otherwise empty.
  TensorType sample = {};
  std::vector<std::string> classes = {};  // names of the classes; one empty name if there are targets
  std::vector<std::string> columns = {};  // names of the features of rows
  std::vector<std::string> categories =
      {};  // names of the columns of words, which are among `columns` as features
  std::vector<std::string> targets = {};  // names of the targets, which follow the features in a row
  bool operator==(const ShardContents&) const = default;
};

// The place of a sample.
struct ShardRecord {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t checksum = 0;  // CRC-32 of the record's bytes
  std::uint32_t label = 0;
  std::uint32_t shard = 0;
};

// A shard file as the index expects it.
struct ShardFile {
  std::uint64_t bytes = 0;     // bytes of the file's records; the end of the file follows them
  std::uint64_t identity = 0;  // a hash of the sizes, checksums and labels of its records
};

// The index of packed shards. Its format is described in docs/reference/shards.md.
struct ShardIndex {
  ShardContents contents;
  std::vector<ShardFile> shards;
  std::vector<ShardRecord> records;
};

// Returns the bytes of an index file.
std::string write_shard_index(const ShardIndex& index);
// Reads an index file. Throws UserError that names the file, and the record, if the file is no index, damaged,
// or names a place that its shards do not have.
ShardIndex read_shard_index(const ByteRange& file);

// A shard file ends, after its records, with these bytes: a magic text, the shard's identity, the version of
// the format, and a CRC-32 of these three.
constexpr std::size_t shard_end_bytes = 24;
// Returns the last bytes of a shard file with this identity.
std::string write_shard_end(std::uint64_t identity);
// Throws UserError, which names the file, unless it ends as the index expects.
void check_shard_end(const ByteRange& file, const ShardFile& expected);

// Continues the hash of a shard with one more record.
std::uint64_t shard_identity(std::uint64_t identity, const ShardRecord& record);
// Returns the CRC-32 of a record.
std::uint32_t record_checksum(std::span<const std::byte> bytes);

// Returns the name of a file: "train.index", "train-00003.shard".
std::string index_name(const std::string& part);
std::string shard_name(const std::string& part, std::size_t number);

}  // namespace plexaura
