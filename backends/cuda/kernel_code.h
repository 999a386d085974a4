#pragma once

#include <string>

namespace plexaura::cuda {

// Returns a hash of the plugin's sources, including its kernels, and of its compiler options. Measured times
// are valid only for the same hash. cmake/KernelCode.cmake writes this function at build time.
std::string kernel_code_stamp();

}  // namespace plexaura::cuda
