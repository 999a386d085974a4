#pragma once

#include <cstddef>
#include <fmt/format.h>
#include <string>

namespace plexaura::cuda::runtime {

// Returns the message of the OutOfMemoryError that allocate_device() throws if the device has too few bytes
// left.
inline std::string out_of_memory_text(std::size_t asked, std::size_t left, std::size_t all) {
  return fmt::format("the GPU was asked for {} bytes of memory and has {} of its {} bytes left", asked, left,
                     all);
}

}  // namespace plexaura::cuda::runtime
