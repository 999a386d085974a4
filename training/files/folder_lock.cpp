#include "training/files/folder_lock.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <span>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "core/base/error.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t longest_name = 300;

// Returns the name that the holder wrote to the file; empty if it has not written it yet.
std::string holder_of(const FileDescriptor& file) {
  std::string name(longest_name, '\0');
  const ssize_t count = ::pread(file.number(), name.data(), name.size(), 0);
  name.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return name;
}

}  // namespace

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", ::getpid(), host.data());
}

bool is_locked(const fs::path& file) {
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  return opened.is_there() && ::flock(opened.number(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

FolderLock::FolderLock(const fs::path& folder, std::span<const std::string> lost)
    : path_(folder / file_name) {
  while (!try_lock()) {
    const std::string holder = holder_of(file_);
    if (holder.empty() || std::ranges::find(lost, holder) == lost.end())
      throw UserError(fmt::format(
          "another run{} writes its checkpoints into {}: wait until it has ended, or name another folder in "
          "output.dir",
          holder.empty() ? "" : ", " + holder + ",", folder.string()));
    std::error_code error;
    if (!fs::remove(path_, error) && error) throw_write_error(path_, error.value());
  }
  const std::string name = this_process();
  if (::ftruncate(file_.number(), 0) != 0) throw_write_error(path_, errno);
  write_all(file_, std::as_bytes(std::span(name)), path_);
}

// Opens the file and takes the lock. Returns false if the lock has another holder.
bool FolderLock::try_lock() {
  file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file_.is_there()) throw_create_error(path_, errno);
  while (::flock(file_.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    throw UserError(fmt::format("cannot lock '{}': {}; name a folder on a file system that has locks",
                                path_.string(), std::generic_category().message(errno)));
  }
  return true;
}

void FolderLock::renew() {
  struct stat held {};
  struct stat found {};
  const bool is_there = ::fstat(file_.number(), &held) == 0 && ::stat(path_.c_str(), &found) == 0 &&
                        held.st_dev == found.st_dev && held.st_ino == found.st_ino;
  if (is_there) return;
  std::error_code ignored;  // if the folder cannot be created, the lock fails too and reports the reason
  fs::create_directories(path_.parent_path(), ignored);
  *this = FolderLock(path_.parent_path());
}

}  // namespace plexaura
