#pragma once

#include "core/device/backend.h"

namespace plexaura::testing {

// The backend that the tests run on: PLEXAURA_BACKEND names it, "cpu" where nothing is said. Opened once.
Backend& test_backend();

// The portable kernels alone: what every other kernel is measured by.
Backend& oracle();

}  // namespace plexaura::testing
