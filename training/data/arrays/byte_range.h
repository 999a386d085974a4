#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "training/files/file.h"

namespace plexaura {

// Bytes that can be read at any position: a file, a part of a file, or memory. Only the bytes of the third kind
// are in memory. Thread-safe.
class ByteRange {
 public:
  // Takes a whole file. Throws as InputFile does.
  explicit ByteRange(const std::filesystem::path& path);
  // Takes `count` bytes of a file from `begin` on. Throws UserError, which names `name`, if the file has fewer.
  ByteRange(std::string name, std::shared_ptr<const InputFile> file, std::uint64_t begin,
            std::uint64_t count);
  ByteRange(std::string name, std::vector<std::uint8_t> bytes);

  // Returns the name for errors.
  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }
  // Fills `into` with the bytes from `offset` on. Throws UserError if the range has fewer.
  void read(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  std::string name_;
  std::shared_ptr<const InputFile> file_;  // null for bytes in memory
  std::uint64_t begin_ = 0;
  std::uint64_t size_ = 0;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace plexaura
