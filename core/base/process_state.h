#pragma once

#include <cstdint>

#include "core/base/export.h"

namespace plexaura {

// Linux's data on a process of this machine, from proc(5).
struct ProcessState {
  char letter = '?';  // R, S, D, T, Z ...; '?' if there is no such process
  // The start of the process in clock ticks since the machine started. It distinguishes processes that had
  // the same number.
  std::int64_t start = 0;
};

PLEXAURA_API ProcessState process_state(int process);

}  // namespace plexaura
