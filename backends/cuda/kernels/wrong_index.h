#pragma once

#include <cstdint>
#include <string>

#include "backends/cuda/kernels/block.h"

namespace plexaura::cuda {

// A kernel's report to the host, in pinned memory, of an index that points outside of a value. Only the first
// such index since the host's last check is kept.
struct WrongIndex {
  std::uint32_t claimed = 0;  // raised by the reporting thread
  std::uint32_t found = 0;    // raised when all members below are written
  const std::string* launch;  // name of the launch
  std::int64_t element;       // place of the index among the indices
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
