#pragma once

#include <string>

namespace plexaura {

// Returns a hash of the sources of all CPU kernels and of their compiler options. Measured times are valid
// only for the same hash. cmake/KernelCode.cmake writes this function at build time.
std::string kernel_code_stamp();

}  // namespace plexaura
