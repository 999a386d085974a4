#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace plexaura::fast {

// Converts `count` elements as convert() does.
using CastLoop = void (*)(const std::byte* from, std::byte* to, std::int64_t count);

// Returns null for two dtypes without such a loop. There is one between float32 and each other floating dtype.
CastLoop find_cast(DType from, DType to);

}  // namespace plexaura::fast
