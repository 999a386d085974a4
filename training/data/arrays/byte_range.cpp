#include "training/data/arrays/byte_range.h"

#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

ByteRange::ByteRange(const std::filesystem::path& path)
    : name_(path.string()), file_(std::make_shared<InputFile>(path)), size_(file_->bytes()) {}

ByteRange::ByteRange(std::string name, std::shared_ptr<const InputFile> file, std::uint64_t begin,
                     std::uint64_t count)
    : name_(std::move(name)), file_(std::move(file)), begin_(begin), size_(count) {
  if (begin > file_->bytes() || count > file_->bytes() - begin)
    throw UserError(
        fmt::format("{}: needs {} bytes from offset {} on, and the file has {}; make or fetch it again",
                    name_, count, begin, file_->bytes()));
}

ByteRange::ByteRange(std::string name, std::vector<std::uint8_t> bytes)
    : name_(std::move(name)), size_(bytes.size()), bytes_(std::move(bytes)) {}

void ByteRange::read(std::uint64_t offset, std::span<std::byte> into) const {
  if (offset > size_ || into.size() > size_ - offset)
    throw UserError(
        fmt::format("{}: ends at offset {}, before the {} bytes from offset {} on; make or fetch it "
                    "again",
                    name_, size_, into.size(), offset));
  if (into.empty()) return;
  if (file_)
    file_->read(begin_ + offset, into);
  else
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
}

}  // namespace plexaura
