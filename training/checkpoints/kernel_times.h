#pragma once

#include <filesystem>
#include <string>

#include "core/compile/tuner.h"

namespace plexaura {

// Where the times of kernels are kept from run to run: $XDG_CACHE_HOME/plexaura/kernel_times, or the same
// below ~/.cache. Empty where neither variable of the environment is set.
std::filesystem::path kernel_times_file();

// What was measured by earlier runs. A file that cannot be read is left aside: returns a sentence about it,
// nothing where all is well or there is no file.
std::string load_kernel_times(const std::filesystem::path& file, Tuner& tuner);

// Adds what was measured for this tuner to what the file holds by then, whole or not at all. A file that cannot
// be written is no error: returns a sentence about it, nothing where all is well.
std::string save_kernel_times(const std::filesystem::path& file, const Tuner& tuner);

}  // namespace plexaura
