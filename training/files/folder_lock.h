#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "training/files/file.h"

namespace plexaura {

// How a process is named to others: "process 4711 on node3".
std::string this_process();

// Whether a process holds a lock on the file. Those who ask at the same time do not take each other for one.
bool is_locked(const std::filesystem::path& file);

// The right to write into a folder: one holder at a time, in this process or another one, on this machine or
// another one that shares the folder. It ends with the object, or with the process however that ends: the
// system sees to it, and the file ".lock" that stays in the folder is no sign of a holder. Throws UserError
// that names the folder and the holder where there is one, and where the file cannot be made or locked.
class FolderLock {
 public:
  static constexpr std::string_view file_name = ".lock";

  // From those of `lost`, processes that are given up but may live, the folder is taken: their own locks fail to
  // renew() then.
  explicit FolderLock(const std::filesystem::path& folder, std::span<const std::string> lost = {});

  // Takes the lock anew where its file, or the whole folder, was removed and others may have taken it since:
  // makes the folder then.
  // Throws as the constructor does.
  void renew();

 private:
  bool try_lock();

  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace plexaura
