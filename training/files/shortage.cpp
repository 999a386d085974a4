#include "training/files/shortage.h"

#include <cerrno>
#include <sys/statvfs.h>
#include <system_error>

namespace plexaura {

namespace fs = std::filesystem;

namespace {

fs::path nearest_folder(fs::path path) {
  std::error_code error;
  do path = path.parent_path();
  while (path.has_relative_path() && !fs::is_directory(path, error));
  return path.empty() ? "." : path;
}

// True if the file system of the folder has no inodes left. Some file systems, such as btrfs, do not count
// inodes, and report a total of 0.
bool has_no_inodes(const fs::path& folder) {
  struct statvfs system {};
  return ::statvfs(folder.c_str(), &system) == 0 && system.f_files > 0 && system.f_favail == 0;
}

}  // namespace

std::optional<Shortage> shortage_at(const fs::path& path, int error) {
  if (error != ENOSPC && error != EDQUOT) return std::nullopt;
  if (error == ENOSPC && has_no_inodes(nearest_folder(path)))
    return Shortage{"no inodes left", "remove files there"};
  return Shortage{std::generic_category().message(error), "free space"};
}

std::string remedy_of_limit(int error) {
  if (error == EMFILE) return "raise the limit of this process (ulimit -n)";
  if (error == ENFILE) return "raise the limit of this machine (fs.file-max), or end other programs";
  return {};
}

}  // namespace plexaura
