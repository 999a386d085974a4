#pragma once

#include <filesystem>
#include <string_view>

#include "training/files/file.h"

namespace plexaura {

// Returns the path of a file that is kept between runs: $XDG_CACHE_HOME/plexaura/NAME, or the same file in
// ~/.cache. Empty if neither XDG_CACHE_HOME nor HOME is an absolute path.
std::filesystem::path cache_file(std::string_view name);

// Locks a cache file, so that runs write it one after another, and creates its folder. The lock ends with the
// returned object. Throws as AtomicFile does, and UserError if another run holds the lock for more than 5
// seconds. If the file system has no locks, what another run writes at the same time may be lost.
FileDescriptor lock_cache(const std::filesystem::path& file);

}  // namespace plexaura
