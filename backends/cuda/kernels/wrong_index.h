#pragma once

#include <cstdint>
#include <string>

#include "backends/cuda/kernels/block.h"

namespace plexaura::cuda {

// A kernel's report to the host, in pinned memory, of an index that points outside of a value. Only the first
// such index since the host's last check is kept.
struct WrongIndex {
  std::uint32_t claimed = 0;  // flag that the reporting thread raises first
  std::uint32_t found = 0;    // flag that is raised when all members below are written
  const std::string* launch;  // name of the launch that found the index
  std::int64_t element;       // number of the index among all indices of the op
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
