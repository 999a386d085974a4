#include "training/data/shards/shard_writer.h"

#include <fmt/format.h>
#include <limits>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/fnv.h"

namespace plexaura {

void prepare_shards(const std::filesystem::path& folder) {
  const std::filesystem::path train = folder / index_name("train");
  const std::filesystem::path validation = folder / index_name("val");
  std::error_code error;
  if (std::filesystem::exists(train, error))
    throw UserError(fmt::format("{}: is there already; name another folder, or remove it with its shards",
                                train.string()));
  std::filesystem::remove(validation, error);
  if (error) throw_write_error(validation, error.value());
}

ShardWriter::ShardWriter(std::filesystem::path folder, std::string part, ShardContents contents,
                         std::uint64_t shard_bytes)
    : folder_(std::move(folder)), part_(std::move(part)), shard_bytes_(shard_bytes) {
  index_.contents = std::move(contents);
}

void ShardWriter::add(std::span<const std::byte> record, std::int64_t label) {
  if (record.size() > std::numeric_limits<std::uint32_t>::max())
    throw UserError(
        fmt::format("{}: sample {} has {} bytes, and a record has less than 4 GiB; make it smaller",
                    (folder_ / index_name(part_)).string(), index_.records.size(), record.size()));
  if (file_ && index_.shards.back().bytes + record.size() > shard_bytes_) end_shard();
  if (!file_) {
    file_.emplace(folder_ / shard_name(part_, index_.shards.size()));
    index_.shards.push_back({.bytes = 0, .identity = fnv_start});
  }
  ShardFile& shard = index_.shards.back();
  index_.records.push_back({.offset = shard.bytes,
                            .bytes = static_cast<std::uint32_t>(record.size()),
                            .checksum = record_checksum(record),
                            .label = static_cast<std::uint32_t>(label),
                            .shard = static_cast<std::uint32_t>(index_.shards.size() - 1)});
  file_->write(record);
  shard.bytes += record.size();
  shard.identity = shard_identity(shard.identity, index_.records.back());
}

void ShardWriter::end_shard() {
  file_->write(write_shard_end(index_.shards.back().identity));
  file_->commit();
  file_.reset();
}

void ShardWriter::finish() {
  if (!file_)
    throw UserError(
        fmt::format("{}: there are no samples to pack; name data with samples", folder_.string()));
  end_shard();
  AtomicFile file(folder_ / index_name(part_));
  file.write(write_shard_index(index_));
  file.commit();
}

}  // namespace plexaura
