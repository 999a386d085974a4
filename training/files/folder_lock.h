#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "training/files/file.h"

namespace plexaura {

// Returns the name of this process in errors: "process 4711 on node3".
std::string this_process();

// True if a process holds an exclusive lock on the file, as FolderLock does. Several processes may ask at the same
// time without disturbing each other.
bool is_locked(const std::filesystem::path& file);

// The right to write to a folder. It has one holder at a time, in this process or another one, on this
// machine or another one that shares the folder. It ends with the object, or with the process, however that
// ends: the system releases the lock. The file ".lock" stays in the folder and does not mean that there is a
// holder. Throws UserError that names the folder and the holder if there is one, and if the file cannot be
// created or locked.
class FolderLock {
 public:
  static constexpr std::string_view file_name = ".lock";

  // `lost` has the names of processes that were given up but may still live. The lock is taken from them;
  // their own renew() then fails.
  explicit FolderLock(const std::filesystem::path& folder, std::span<const std::string> lost = {});

  // Takes the lock again if its file, or the whole folder, was removed, so that other processes may have
  // taken it since. Creates the folder if needed. Throws as the constructor does.
  void renew();

 private:
  bool try_lock();

  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace plexaura
