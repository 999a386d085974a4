#pragma once

#include <filesystem>
#include <string_view>

#include "training/files/file.h"

namespace plexaura {

// Where something is kept from run to run: $XDG_CACHE_HOME/plexaura/NAME, or the same below ~/.cache. Empty where neither
// variable of the environment is set.
std::filesystem::path cache_file(std::string_view name);

// Runs that keep something in this file at once do so one after the other; it ends with the object. Makes the folder.
// Throws as AtomicFile does, and UserError where another run holds it for long. Where the file system has no locks, what another
// run keeps in the same moment may be lost.
FileDescriptor lock_cache(const std::filesystem::path& file);

}  // namespace plexaura
