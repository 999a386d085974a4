#include "training/data/shards/sharded_samples.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/fnv.h"
#include "training/data/images/image.h"

namespace plexaura {

ShardFiles::ShardFiles(const std::filesystem::path& folder, const std::string& part)
    : index_(read_shard_index(ByteRange(folder / index_name(part)))) {
  for (std::size_t i = 0; i < index_.shards.size(); ++i) {
    shards_.emplace_back(folder / shard_name(part, i));
    check_shard_end(shards_.back(), index_.shards[i]);
  }
}

std::string ShardFiles::place(std::int64_t index) const {
  const ShardRecord& found = record(index);
  return fmt::format("{}: record {} (offset {})", shards_[found.shard].name(), index, found.offset);
}

void ShardFiles::read(std::int64_t index, std::span<std::byte> into) const {
  const ShardRecord& found = record(index);
  shards_[found.shard].read(found.offset, into);
  if (record_checksum(into) != found.checksum)
    throw UserError(
        fmt::format("{}: its bytes do not have its checksum; pack the data again with tools/pack, or "
                    "fetch the file again",
                    place(index)));
}

std::uint64_t ShardFiles::identity() const {
  std::uint64_t hash = fnv_start;
  for (const ShardRecord& found : index_.records) hash = shard_identity(hash, found);
  return hash;
}

ShardedImages::ShardedImages(std::shared_ptr<const ShardFiles> files, ImageFolderOptions options)
    : files_(std::move(files)), options_(std::move(options)) {
  if (files_->contents().kind != RecordKind::image_file)
    throw UserError(
        fmt::format("{}: has samples and no image files; read it as ShardedSamples", files_->place(0)));
  if (options_.image_size < 1)
    throw UserError(fmt::format("image_size is {}; give 1 pixel or more", options_.image_size));
}

void ShardedImages::read(std::int64_t index, const SampleContext& context, std::span<std::uint8_t> sample,
                         std::int64_t& label) const {
  label = this->label(index);
  std::vector<std::uint8_t> file(files_->bytes(index));
  files_->read(index, std::as_writable_bytes(std::span(file)));
  make_sample(decode_image(file, files_->place(index)), options_, context, index, sample);
}

}  // namespace plexaura
