#pragma once

#include "core/device/backend.h"

namespace plexaura::testing {

// The backend that tests run on, opened once: the one that PLEXAURA_BACKEND names, or else the CPU. The far
// device reads PLEXAURA_FAR_LAZY and PLEXAURA_FAR_REGIONS.
Backend& test_backend();
// Whether nothing named another one.
bool is_default_backend();

// The portable kernels alone, opened once: what every other kernel is measured by.
Backend& oracle();

}  // namespace plexaura::testing
