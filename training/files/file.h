#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"

namespace plexaura {

// A regular file opened for reading. Errors name the file: UserError where it is missing, unreadable, not a
// regular file or shorter than it was; DeviceError where the disk fails. Several threads may read it at
// once.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }
  // Fills `into` with the bytes from `offset` on.
  void read(std::uint64_t offset, std::span<std::byte> into) const;
  std::vector<std::uint8_t> read_all() const;

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  std::uint64_t bytes_ = 0;
};

// The whole contents of a file. Throws as InputFile does, and UserError for more than `limit` bytes.
std::string read_text_file(const std::filesystem::path& path, std::uint64_t limit);

// Writes a file anew, without the care of an AtomicFile: in place, and not through to the disk. Throws as
// that does; what was written so far is removed then. Thread-safe for different paths.
void write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);

// A file that appears under its name whole or not at all: bytes go into a temporary file beside it, which
// `commit` writes through to the disk and renames. Without `commit` (or when it throws) the temporary file is
// removed and a file that stood under the name stays as it was. A process that is killed leaves its temporary
// file behind, ".NAME.unfinished-PID-NUMBER". Throws UserError where the file cannot be created (no such
// folder, no permission, the name is that of a folder or a device) or the disk is full, DeviceError with the
// system's reason where writing fails otherwise. One thread at a time.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // To be called once, after the last write.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileDescriptor file_;
  bool committed_ = false;
};

// Writes all bytes, in one system call where the system takes them at once. Throws as throw_write_error()
// does.
void write_all(const FileDescriptor& file, std::span<const std::byte> bytes,
               const std::filesystem::path& path);

// What was to be written is gone, or its folder: somebody may have removed it meanwhile.
class RemovedError final : public UserError {
 public:
  using UserError::UserError;
};

// Whether `error` (an errno) is for the user to mend, as a wrong path or a full disk is, and not a failure of
// the machine.
bool user_can_mend(int error);

// An error with the file, the reason `error` (an errno) and what to do: "cannot write 'a/b': No space left on
// device; ...". UserError where its user can mend it (RemovedError for ENOENT), DeviceError otherwise.
[[noreturn]] void throw_write_error(const std::filesystem::path& path, int error);
// The same for a file that could not be created.
[[noreturn]] void throw_create_error(const std::filesystem::path& path, int error);

}  // namespace plexaura
