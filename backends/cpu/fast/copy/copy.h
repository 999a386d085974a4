#pragma once

#include <cstddef>

namespace plexaura::fast {

// Copies `bytes` bytes, with several threads if that is faster. The ranges must not overlap.
void copy_bytes(const std::byte* src, std::byte* dst, std::size_t bytes);

}  // namespace plexaura::fast
