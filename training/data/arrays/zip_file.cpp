#include "training/data/arrays/zip_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <span>
#include <utility>
#include <zlib.h>

#include "core/base/error.h"
#include "training/data/arrays/little_endian.h"

namespace plexaura {

namespace {

constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t large_end_signature = 0x06064b50;
constexpr std::uint32_t large_locator_signature = 0x07064b50;
constexpr std::uint32_t directory_signature = 0x02014b50;
constexpr std::uint32_t header_signature = 0x04034b50;
constexpr std::uint64_t end_bytes = 22;
constexpr std::uint64_t large_end_bytes = 56;
constexpr std::uint64_t large_locator_bytes = 20;
constexpr std::uint64_t directory_bytes = 46;
constexpr std::uint64_t header_bytes = 30;
constexpr std::uint64_t longest_comment = 65535;
constexpr std::size_t largest_piece = 1 << 20;
constexpr std::uint16_t is_stored = 0;
constexpr std::uint16_t is_deflated = 8;

[[noreturn]] void refuse(const std::string& name, std::uint64_t offset, const char* what) {
  throw UserError(fmt::format("{}: offset {}: {}; make or fetch the file again", name, offset, what));
}

std::vector<std::byte> bytes_at(const InputFile& file, std::uint64_t offset, std::uint64_t count) {
  const std::string name = file.path().string();
  if (offset > file.bytes() || count > file.bytes() - offset)
    refuse(name, offset, "the zip archive ends before a record of its directory");
  std::vector<std::byte> bytes(count);
  file.read(offset, bytes);
  return bytes;
}

// The place of the central directory of an archive, which lists its members.
struct DirectoryPlace {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;  // number of members
};

// Reads the record for archives above 4 GiB, which stands before the end record if there is one.
void read_large_end(const InputFile& file, std::uint64_t end, DirectoryPlace& place) {
  if (end < large_locator_bytes) return;
  const auto locator = bytes_at(file, end - large_locator_bytes, large_locator_bytes);
  if (little_endian<std::uint32_t>(locator, 0) != large_locator_signature) return;
  const auto at = little_endian<std::uint64_t>(locator, 8);
  const auto record = bytes_at(file, at, large_end_bytes);
  if (little_endian<std::uint32_t>(record, 0) != large_end_signature)
    refuse(file.path().string(), at, "there is no end record of a zip64 archive");
  place = {.begin = little_endian<std::uint64_t>(record, 48),
           .bytes = little_endian<std::uint64_t>(record, 40),
           .count = little_endian<std::uint64_t>(record, 32)};
}

DirectoryPlace find_directory(const InputFile& file) {
  const std::uint64_t tail_bytes = std::min(file.bytes(), end_bytes + longest_comment);
  const std::uint64_t tail_begin = file.bytes() - tail_bytes;
  const auto tail = bytes_at(file, tail_begin, tail_bytes);
  for (std::uint64_t back = end_bytes; back <= tail.size(); ++back) {
    const std::size_t at = tail.size() - back;
    if (little_endian<std::uint32_t>(tail, at) != end_signature) continue;
    if (little_endian<std::uint16_t>(tail, at + 20) != back - end_bytes)
      continue;  // the number is not the length of the comment
    if (little_endian<std::uint16_t>(tail, at + 4) != 0)
      refuse(file.path().string(), tail_begin + at, "the zip archive is one of several parts");
    DirectoryPlace place{.begin = little_endian<std::uint32_t>(tail, at + 16),
                         .bytes = little_endian<std::uint32_t>(tail, at + 12),
                         .count = little_endian<std::uint16_t>(tail, at + 10)};
    read_large_end(file, tail_begin + at, place);
    return place;
  }
  throw UserError(
      fmt::format("{}: has no end record of a zip archive; name a file of numpy.savez(), or fetch it "
                  "again if it is cut off",
                  file.path().string()));
}

class Inflater {
 public:
  explicit Inflater(std::string name) : name_(std::move(name)) {
    constexpr int raw_window = -15;  // no header of zlib or gzip
    if (inflateInit2(&zlib_, raw_window) != Z_OK)
      throw DeviceError("the decoder of zip cannot be started; see to the memory of the machine");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&zlib_); }

  // Decodes all bytes of `from`, which must be `wanted` bytes. Memory grows with the bytes that exist.
  std::vector<std::uint8_t> inflate_all(const ByteRange& from, std::uint64_t wanted) {
    std::vector<std::uint8_t> out;
    std::vector<std::byte> input;
    for (std::uint64_t at = 0; at < from.size() && !is_at_end_; at += input.size()) {
      input.resize(std::min<std::uint64_t>(largest_piece, from.size() - at));
      from.read(at, input);
      decode(input, wanted, out);
    }
    if (!is_at_end_ || out.size() != wanted)
      throw UserError(
          fmt::format("{}: its compressed data ends after {} of {} bytes; make or fetch the file again",
                      name_, out.size(), wanted));
    return out;
  }

 private:
  void decode(std::span<std::byte> input, std::uint64_t wanted, std::vector<std::uint8_t>& out) {
    zlib_.next_in = reinterpret_cast<Bytef*>(input.data());
    zlib_.avail_in = static_cast<uInt>(input.size());
    do {
      const std::size_t before = out.size();
      // One byte more than wanted detects data that is too long.
      const std::size_t room = std::min<std::uint64_t>(largest_piece, wanted + 1 - before);
      out.resize(before + room);
      zlib_.next_out = out.data() + before;
      zlib_.avail_out = static_cast<uInt>(room);
      const int code = inflate(&zlib_, Z_NO_FLUSH);
      out.resize(before + room - zlib_.avail_out);
      is_at_end_ = code == Z_STREAM_END;
      if (out.size() > wanted || (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR))
        throw UserError(fmt::format("{}: its compressed data is damaged: {}; make or fetch the file again",
                                    name_,
                                    out.size() > wanted    ? "it is longer than the directory says"
                                    : zlib_.msg != nullptr ? zlib_.msg
                                                           : zError(code)));
    } while (!is_at_end_ && (zlib_.avail_in > 0 || zlib_.avail_out == 0));
  }

  std::string name_;
  z_stream zlib_{};
  bool is_at_end_ = false;
};

std::uint32_t checksum_of(const ByteRange& range) {
  uLong sum = crc32(0, nullptr, 0);
  std::vector<std::byte> piece;
  for (std::uint64_t at = 0; at < range.size(); at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(largest_piece, range.size() - at));
    range.read(at, piece);
    sum = crc32(sum, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(piece.size()));
  }
  return static_cast<std::uint32_t>(sum);
}

}  // namespace

ZipFile::ZipFile(const std::filesystem::path& path) : file_(std::make_shared<InputFile>(path)) {
  const DirectoryPlace place = find_directory(*file_);
  read_directory(place.begin, place.bytes, place.count);
}

void ZipFile::read_directory(std::uint64_t begin, std::uint64_t bytes, std::uint64_t count) {
  const std::string file = file_->path().string();
  const auto directory = bytes_at(*file_, begin, bytes);
  const std::span<const std::byte> all(directory);
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (bytes - at < directory_bytes || little_endian<std::uint32_t>(all, at) != directory_signature)
      refuse(file, begin + at, "there is no record of a member in the directory of the zip archive");
    const std::uint64_t name_bytes = little_endian<std::uint16_t>(all, at + 28);
    const std::uint64_t extra_bytes = little_endian<std::uint16_t>(all, at + 30);
    const std::uint64_t record_bytes =
        directory_bytes + name_bytes + extra_bytes + little_endian<std::uint16_t>(all, at + 32);
    if (record_bytes > bytes - at) refuse(file, begin + at, "the directory of the zip archive is cut off");
    Member member{.flags = little_endian<std::uint16_t>(all, at + 8),
                  .method = little_endian<std::uint16_t>(all, at + 10),
                  .checksum = little_endian<std::uint32_t>(all, at + 16),
                  .compressed = little_endian<std::uint32_t>(all, at + 20),
                  .bytes = little_endian<std::uint32_t>(all, at + 24),
                  .header = little_endian<std::uint32_t>(all, at + 42)};
    // The extra field 1 has, in this order, the numbers that 32 bits cannot hold.
    auto extra = all.subspan(at + directory_bytes + name_bytes, extra_bytes);
    while (extra.size() >= 4) {
      const auto id = little_endian<std::uint16_t>(extra, 0);
      const std::size_t length = little_endian<std::uint16_t>(extra, 2);
      if (length > extra.size() - 4) break;
      auto field = extra.subspan(4, length);
      for (std::uint64_t* number : {&member.bytes, &member.compressed, &member.header}) {
        if (id != 1 || *number != std::numeric_limits<std::uint32_t>::max() || field.size() < 8) continue;
        *number = little_endian<std::uint64_t>(field, 0);
        field = field.subspan(8);
      }
      extra = extra.subspan(4 + length);
    }
    const std::string name(reinterpret_cast<const char*>(all.data() + at + directory_bytes), name_bytes);
    if (!members_.emplace(name, member).second)
      throw UserError(fmt::format("{}: has two members '{}'; remove one of them", file, name));
    at += record_bytes;
  }
}

std::vector<std::string> ZipFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, member] : members_) names.push_back(name);
  return names;
}

ByteRange ZipFile::place_of(const std::string& name, const Member& member) const {
  const auto header = bytes_at(*file_, member.header, header_bytes);
  if (little_endian<std::uint32_t>(header, 0) != header_signature)
    refuse(name, member.header, "the member does not begin here");
  const std::uint64_t begin = member.header + header_bytes + little_endian<std::uint16_t>(header, 26) +
                              little_endian<std::uint16_t>(header, 28);
  return {name, file_, begin, member.compressed};
}

ByteRange ZipFile::open(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end())
    throw UserError(fmt::format("{}: has no member '{}'; it has {}", file_->path().string(), name,
                                members_.empty() ? "none" : fmt::format("{}", fmt::join(names(), ", "))));
  const Member& member = found->second;
  const std::string place = fmt::format("{}: {}", file_->path().string(), name);
  if ((member.flags & 1) != 0)
    throw UserError(fmt::format("{}: is encrypted; save it without a password", place));
  if (member.method != is_stored && member.method != is_deflated)
    throw UserError(
        fmt::format("{}: is compressed by method {}; save it with numpy.savez() or savez_compressed(), whose "
                    "members are stored or deflated",
                    place, member.method));
  ByteRange range = place_of(place, member);
  if (member.method == is_deflated)
    range = ByteRange(place, Inflater(place).inflate_all(range, member.bytes));
  else if (member.bytes != member.compressed)
    refuse(place, member.header, "the member is stored, but its two sizes differ");
  if (checksum_of(range) != member.checksum)
    refuse(place, member.header, "the bytes of the member do not have its checksum");
  return range;
}

}  // namespace plexaura
