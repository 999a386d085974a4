#pragma once

#include <string>

namespace plexaura::cuda {

// Throws DeviceError, with the launch's name, if CUDA refused the launch before this call. The function is a
// part of the runtime.
void check_launch(const std::string& name);

}  // namespace plexaura::cuda
