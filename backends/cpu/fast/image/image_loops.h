#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

// y = (x / 255 - mean) / stddev, rounded after each step.
PLEXAURA_CLONED void normalise_plane(const std::uint8_t* x, std::int64_t count, float mean, float stddev,
                                     float* y);

}  // namespace plexaura::fast
