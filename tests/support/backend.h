#pragma once

#include "core/device/backend.h"

namespace plexaura::testing {

// Returns the backend that tests run on, opened once: the one that PLEXAURA_BACKEND names, or the CPU. The
// far device reads PLEXAURA_FAR_LAZY and PLEXAURA_FAR_REGIONS.
Backend& test_backend();
// Returns true if PLEXAURA_BACKEND names no backend.
bool is_default_backend();

// Returns a backend with only the portable kernels, opened once. It is the reference for all other kernels.
Backend& oracle();

}  // namespace plexaura::testing
