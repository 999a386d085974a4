#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plexaura {

// Reads a regular file from beginning to end, and decodes it if it begins like gzip. Throws UserError with
// the file's name if it cannot be read or is not a regular file, and if a gzip stream is incomplete, damaged, or
// followed by anything but another gzip stream. One thread at a time may use it.
class UnzippedFile {
 public:
  explicit UnzippedFile(const std::filesystem::path& path);
  UnzippedFile(const UnzippedFile&) = delete;
  UnzippedFile& operator=(const UnzippedFile&) = delete;
  ~UnzippedFile();

  bool is_gzip() const { return stream_ != nullptr; }
  // Fills `into` with the next bytes. Returns how many there were, which is fewer than asked for only at the
  // end.
  std::size_t read(std::span<std::uint8_t> into);

 private:
  struct Stream;

  std::size_t copy(std::span<std::uint8_t> into);
  std::size_t inflate_into(std::span<std::uint8_t> into);
  void begin_next_member();

  std::string name_;
  std::vector<std::uint8_t> bytes_;  // the contents of the file on disk
  std::size_t at_ = 0;               // position in a plain file
  std::unique_ptr<Stream> stream_;   // null for a plain file
};

}  // namespace plexaura
