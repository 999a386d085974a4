#pragma once

#include <string>

namespace plexaura::cuda {

// DeviceError, with the launch's name, where the launch before was refused. A part of the runtime.
void check_launch(const std::string& name);

}  // namespace plexaura::cuda
