#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/error.h"

namespace plexaura {

// The error for a limit of the process or the machine on open files, which the user can raise. Another file
// would fail in the same way.
class LimitReached : public UserError {
  using UserError::UserError;
};

// A lack of space or inodes in a file system, and what the user can do about it: "no inodes left", "remove
// files there".
struct Shortage {
  std::string reason;
  std::string remedy;
};

// Returns what was missing when `path` could not be created; nothing if `error` (an errno) has another cause.
// The system has one error for a lack of space and of inodes.
std::optional<Shortage> shortage_at(const std::filesystem::path& path, int error);

// Returns what to do if `error` (an errno) is a limit on open files. Using another file or folder would not
// help then. Empty for any other error.
std::string remedy_of_limit(int error);

}  // namespace plexaura
