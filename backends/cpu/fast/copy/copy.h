#pragma once

#include <cstddef>

namespace plexaura::fast {

// Copies with all threads where it pays. The ranges do not overlap.
void copy_bytes(const std::byte* src, std::byte* dst, std::size_t bytes);

}  // namespace plexaura::fast
