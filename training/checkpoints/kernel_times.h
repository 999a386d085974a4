#pragma once

#include <filesystem>
#include <string>

#include "core/compile/tuner.h"

namespace plexaura {

// Returns the file that keeps the times of kernels between runs: $XDG_CACHE_HOME/plexaura/kernel_times, or
// the same file in ~/.cache. Empty if neither XDG_CACHE_HOME nor HOME is an absolute path.
std::filesystem::path kernel_times_file();

// Adds the times that earlier runs have measured to the tuner. If the file cannot be read, is
// damaged or is of another version, ignores it and returns a sentence about that. Otherwise, and if there is no
// file, returns an empty text.
std::string load_kernel_times(const std::filesystem::path& file, Tuner& tuner);

// Adds the times that this tuner has measured to the file, completely or not at all. If the file cannot be
// written, returns a sentence about that, and throws nothing; otherwise returns an empty text.
std::string save_kernel_times(const std::filesystem::path& file, const Tuner& tuner);

}  // namespace plexaura
