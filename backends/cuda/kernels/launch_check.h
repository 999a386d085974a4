#pragma once

#include <string>

namespace plexaura::cuda {

// DeviceError, with the launch's name, where the launch before was refused.
void check_launch(const std::string& name);

}  // namespace plexaura::cuda
