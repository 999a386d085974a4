#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace plexaura::fast {

// Converts `count` elements as convert() does.
using CastLoop = void (*)(const std::byte* from, std::byte* to, std::int64_t count);

// Returns the loop between two dtypes, or null if there is none. There is one between float32 and each other floating
// dtype.
CastLoop find_cast(DType from, DType to);

}  // namespace plexaura::fast
