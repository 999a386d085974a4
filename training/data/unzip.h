#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plexaura {

// The contents of a regular file, decoded where it begins as gzip does, read from front to end. Errors are
// UserError with the file's name: for a file that cannot be read or is no regular file, and for a gzip stream
// that is cut off, damaged or followed by anything but another one. One thread at a time.
class UnzippedFile {
 public:
  explicit UnzippedFile(const std::filesystem::path& path);
  UnzippedFile(const UnzippedFile&) = delete;
  UnzippedFile& operator=(const UnzippedFile&) = delete;
  ~UnzippedFile();

  bool is_gzip() const { return stream_ != nullptr; }
  // Fills `into` with the next bytes. Gives how many there were: fewer than asked for only at the end.
  std::size_t read(std::span<std::uint8_t> into);

 private:
  struct Stream;

  std::size_t copy(std::span<std::uint8_t> into);
  std::size_t inflate_into(std::span<std::uint8_t> into);
  void begin_next_member();

  std::string name_;
  std::vector<std::uint8_t> bytes_;  // as they lie on the disk
  std::size_t at_ = 0;               // of a plain file
  std::unique_ptr<Stream> stream_;   // of a gzip file
};

}  // namespace plexaura
