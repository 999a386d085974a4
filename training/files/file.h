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

// A regular file opened for reading. Errors name the file: UserError if it is missing, unreadable, no regular
// file, or shorter than before; DeviceError if the disk fails. Several threads may read it at the same time.
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

// Returns the whole contents of a file. Throws as InputFile does, and UserError for more than `limit` bytes.
std::string read_text_file(const std::filesystem::path& path, std::uint64_t limit);

// Overwrites a file in place, without the guarantees of an AtomicFile and without a sync to disk. Throws as
// AtomicFile does, but accepts a device. Removes the file if writing fails. Thread-safe for different paths.
void write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);

// A file that appears under its name completely or not at all. Bytes are written to a temporary file in the
// same folder, which commit() syncs to disk and renames. Without commit(), or if it throws before the rename, the
// temporary file is removed, and an existing file with the name does not change. commit() may also throw after the
// rename, if the folder cannot be synced; then the new file is there. A process that is killed leaves its
// temporary file, ".NAME.unfinished-PID-NUMBER". Throws UserError if the file cannot be created (no such
// folder, no permission, the name is that of a folder or a device) or the disk is full, and DeviceError with
// the system's reason for other failures. One thread at a time may use it.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Must be called once, after the last write.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileDescriptor file_;
  bool committed_ = false;
};

// Writes all bytes, in one system call if they are at most 1 GiB and the system accepts them. Throws as
// throw_write_error() does.
void write_all(const FileDescriptor& file, std::span<const std::byte> bytes,
               const std::filesystem::path& path);

// Thrown if the file or its folder does not exist; it may have been removed while the program ran.
class RemovedError final : public UserError {
 public:
  using UserError::UserError;
};

// True if the user can correct `error` (an errno), such as a wrong path or a full disk. False for a failure
// of the machine.
bool user_can_mend(int error);

// Throws an error with the file, the reason `error` (an errno) and what to do: "cannot write 'a/b': No space
// left on device; ...". UserError if the user can correct it (RemovedError for ENOENT), otherwise
// DeviceError.
[[noreturn]] void throw_write_error(const std::filesystem::path& path, int error);
// Throws the error for a file or a folder that could not be created, as throw_write_error() does.
[[noreturn]] void throw_create_error(const std::filesystem::path& path, int error);
[[noreturn]] void throw_create_folder_error(const std::filesystem::path& path, int error);

}  // namespace plexaura
