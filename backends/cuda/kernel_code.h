#pragma once

#include <string>

namespace plexaura::cuda {

// A hash of the plugin's sources, its kernels among them, and of how they were compiled. Times that were measured hold
// where it is equal. Its function is written at build time, by cmake/KernelCode.cmake.
std::string kernel_code_stamp();

}  // namespace plexaura::cuda
