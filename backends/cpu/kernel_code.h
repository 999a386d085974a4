#pragma once

#include <string>

namespace plexaura {

// A hash of the sources of all kernels on the CPU and of how they were compiled. Times that were measured hold
// where it is equal. Its function is written at build time, by cmake/KernelCode.cmake.
std::string kernel_code_stamp();

}  // namespace plexaura
