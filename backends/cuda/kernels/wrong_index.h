#pragma once

#include <cstdint>
#include <string>

#include "backends/cuda/kernels/block.h"

namespace plexaura::cuda {

// What a kernel tells the host, in pinned memory, of an index that points outside of a value: the first one since the
// host has looked last.
struct WrongIndex {
  std::uint32_t claimed = 0;  // by the thread that tells
  std::uint32_t found = 0;    // the rest is whole
  const std::string* launch;  // its name
  std::int64_t element;       // of the indices
  std::int64_t index;
  std::int64_t extent;
};

PLEXAURA_DEVICE inline void tell(WrongIndex& to, const WrongIndex& what) {
  if (!claim(to.claimed)) return;
  to.launch = what.launch;
  to.element = what.element;
  to.index = what.index;
  to.extent = what.extent;
  publish(to.found);
}

}  // namespace plexaura::cuda
