#include "training/files/file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "training/files/shortage.h"

namespace plexaura {
namespace {

namespace fs = std::filesystem;

// Limit for one system call. Linux itself stops at 2 GiB.
constexpr std::size_t largest_transfer = std::size_t{1} << 30;

// Returns the sentence of an error, such as "cannot read 'a/b': No such file or directory; ...".
std::string failure(std::string_view what, const fs::path& path, int error, std::string_view advice) {
  const std::string remedy = remedy_of_limit(error);
  return fmt::format("cannot {} '{}': {}; {}", what, path.string(), std::generic_category().message(error),
                     remedy.empty() ? advice : remedy);
}

[[noreturn]] void throw_read_error(const fs::path& path, int error) {
  if (!remedy_of_limit(error).empty()) throw LimitReached(failure("read", path, error, ""));
  if (user_can_mend(error))
    throw UserError(failure("read", path, error, "check the path and its permissions"));
  throw DeviceError(failure("read", path, error, "check the machine; the file itself may be intact"));
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

fs::path next_temporary(const fs::path& path) {
  static std::atomic<unsigned> count{0};
  return folder_of(path) / fmt::format(".{}.unfinished-{}-{}", path.filename().string(), ::getpid(), count++);
}

// Throws if the path is a device or a folder. A rename to this path would destroy a device, and would fail
// late for a folder.
void check_replaceable(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!path.has_filename() || (fs::exists(status) && !fs::is_regular_file(status)))
    throw UserError(fmt::format("cannot write '{}': it is not a regular file; name another", path.string()));
}

// Syncs the folder of a file: a rename is on the disk only after that. Some file systems cannot sync folders,
// and return EINVAL.
void sync_folder(const fs::path& path) {
  const FileDescriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_there() || (::fsync(folder.number()) != 0 && errno != EINVAL))
    throw_write_error(path, errno);
}

}  // namespace

InputFile::InputFile(fs::path path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a named pipe would wait for its writer. For regular files it makes no
  // difference.
  file_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file_.is_there()) throw_read_error(path_, errno);
  struct stat status {};
  if (::fstat(file_.number(), &status) != 0) throw_read_error(path_, errno);
  if (!S_ISREG(status.st_mode))
    throw UserError(fmt::format("cannot read '{}': it is not a regular file; name another", path_.string()));
  bytes_ = static_cast<std::uint64_t>(status.st_size);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t count = ::pread(file_.number(), into.data(), std::min(into.size(), largest_transfer),
                                  static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_read_error(path_, errno);
    if (count == 0)
      throw UserError(
          fmt::format("'{}' ends at byte {}, before it was read to its end", path_.string(), offset));
    offset += static_cast<std::uint64_t>(count);
    into = into.subspan(static_cast<std::size_t>(count));
  }
}

std::vector<std::uint8_t> InputFile::read_all() const {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(bytes_));
  read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::string read_text_file(const fs::path& path, std::uint64_t limit) {
  const InputFile file(path);
  if (file.bytes() > limit)
    throw UserError(fmt::format("'{}' has {} bytes; a file of this kind has at most {}", path.string(),
                                file.bytes(), limit));
  std::string text(static_cast<std::size_t>(file.bytes()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void write_file(const fs::path& path, std::span<const std::uint8_t> bytes) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.is_there()) throw_create_error(path, errno);
  try {
    write_all(file, std::as_bytes(bytes), path);
    if (!file.close()) throw_write_error(path, errno);
  } catch (const Error&) {
    ::unlink(path.c_str());
    throw;
  }
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  check_replaceable(path_);
  do {
    temporary_ = next_temporary(path_);
    file_ = FileDescriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  } while (!file_.is_there() && errno == EEXIST);
  if (!file_.is_there()) throw_create_error(path_, errno);
}

AtomicFile::~AtomicFile() {
  if (!committed_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) { write_all(file_, bytes, path_); }

void AtomicFile::commit() {
  if (::fsync(file_.number()) != 0 || !file_.close()) throw_write_error(path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_write_error(path_, errno);
  committed_ = true;
  sync_folder(path_);
}

void write_all(const FileDescriptor& file, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.number(), bytes.data(), std::min(bytes.size(), largest_transfer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_write_error(path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

bool user_can_mend(int error) {
  constexpr std::array mendable{ENOENT, EACCES, EPERM,  ENOTDIR, EISDIR, EROFS,  ELOOP, ENAMETOOLONG,
                                EINVAL, ENOSPC, EDQUOT, EFBIG,   EPIPE,  EMFILE, ENFILE};
  return std::ranges::find(mendable, error) != mendable.end();
}

void throw_write_error(const fs::path& path, int error) {
  const std::string text = failure("write", path, error, "free space or name another place");
  if (error == ENOENT) throw RemovedError(text);
  if (user_can_mend(error)) throw UserError(text);
  throw DeviceError(text);
}

namespace {

[[noreturn]] void throw_create_error_with(const fs::path& path, int error, std::string_view advice) {
  const std::optional<Shortage> shortage = shortage_at(path, error);
  const std::string text = shortage ? fmt::format("cannot create '{}': {}; {} or name another place",
                                                  path.string(), shortage->reason, shortage->remedy)
                                    : failure("create", path, error, advice);
  if (error == ENOENT) throw RemovedError(text);
  if (user_can_mend(error)) throw UserError(text);
  throw DeviceError(text);
}

}  // namespace

void throw_create_error(const fs::path& path, int error) {
  throw_create_error_with(path, error, "name a file in a folder that exists and can be written");
}

void throw_create_folder_error(const fs::path& path, int error) {
  throw_create_error_with(path, error, "name a folder, not a file, at a place that can be written");
}

}  // namespace plexaura
