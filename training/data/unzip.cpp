#include "training/data/unzip.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <zlib.h>

#include "core/base/error.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

constexpr std::array<std::uint8_t, 2> gzip_signature{0x1f, 0x8b};

bool begins_as_gzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= gzip_signature.size() &&
         std::ranges::equal(bytes.first(gzip_signature.size()), gzip_signature);
}

uInt at_most(std::size_t bytes) {
  return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

}  // namespace

struct UnzippedFile::Stream {
  Stream() {
    constexpr int largest_window = 15;
    constexpr int only_gzip = 16;
    if (inflateInit2(&zlib, largest_window + only_gzip) != Z_OK)
      throw DeviceError("the decoder of gzip cannot be started; see to the memory of the machine");
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { inflateEnd(&zlib); }

  z_stream zlib{};
  std::span<const std::uint8_t> input;  // bytes that zlib has not read yet
  bool at_member_end = false;
};

UnzippedFile::UnzippedFile(const std::filesystem::path& path)
    : name_(path.string()), bytes_(InputFile(path).read_all()) {
  if (!begins_as_gzip(bytes_)) return;
  stream_ = std::make_unique<Stream>();
  stream_->input = bytes_;
}

UnzippedFile::~UnzippedFile() = default;

std::size_t UnzippedFile::read(std::span<std::uint8_t> into) {
  if (!stream_) return copy(into);
  std::size_t count = 0;
  while (count < into.size()) {
    if (stream_->at_member_end) {
      if (stream_->input.empty()) break;
      begin_next_member();
    }
    count += inflate_into(into.subspan(count));
  }
  return count;
}

std::size_t UnzippedFile::copy(std::span<std::uint8_t> into) {
  const std::size_t count = std::min(into.size(), bytes_.size() - at_);
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), count, into.begin());
  at_ += count;
  return count;
}

// A gzip file may consist of several streams in sequence.
void UnzippedFile::begin_next_member() {
  if (!begins_as_gzip(stream_->input))
    throw UserError(
        fmt::format("{}: has bytes after its gzip stream that are not gzip; fetch the file again", name_));
  inflateReset(&stream_->zlib);
  stream_->at_member_end = false;
}

std::size_t UnzippedFile::inflate_into(std::span<std::uint8_t> into) {
  z_stream& zlib = stream_->zlib;
  std::span<const std::uint8_t>& input = stream_->input;
  zlib.next_in = const_cast<Bytef*>(input.data());  // zlib only reads it
  zlib.avail_in = at_most(input.size());
  zlib.next_out = into.data();
  zlib.avail_out = at_most(into.size());
  const uInt given = zlib.avail_in;
  const uInt wanted = zlib.avail_out;
  const int code = inflate(&zlib, Z_NO_FLUSH);
  input = input.subspan(given - zlib.avail_in);
  stream_->at_member_end = code == Z_STREAM_END;
  if (code == Z_BUF_ERROR || (code == Z_OK && input.empty() && zlib.avail_out > 0))
    throw UserError(fmt::format("{}: the gzip stream is cut off; fetch the file again", name_));
  if (code != Z_OK && code != Z_STREAM_END)
    throw UserError(fmt::format("{}: the gzip stream is damaged: {}; fetch the file again", name_,
                                zlib.msg != nullptr ? zlib.msg : zError(code)));
  return wanted - zlib.avail_out;
}

}  // namespace plexaura
