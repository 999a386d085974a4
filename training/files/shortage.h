#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/error.h"

namespace plexaura {

// A limit of the process or of the machine on open files, which the user can raise. It says nothing against a file.
class LimitReached : public UserError {
  using UserError::UserError;
};

// Of what a file system has too little, in words, and what its user can do: "no inodes left", "remove files there".
struct Shortage {
  std::string reason;
  std::string remedy;
};

// What was missing when `path` could not be created; nothing where `error` (an errno) has another cause. The system has
// one error for space and for inodes.
std::optional<Shortage> shortage_at(const std::filesystem::path& path, int error);

// What mends an error (an errno) that no other file or folder would mend: of a limit on open files. Empty for any other error.
std::string remedy_of_limit(int error);

}  // namespace plexaura
