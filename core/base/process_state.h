#pragma once

#include <cstdint>

#include "core/base/export.h"

namespace plexaura {

// What Linux tells of a process of this machine (proc(5)).
struct ProcessState {
  char letter = '?';       // R, S, D, T, Z ...; '?' where there is no such process
  std::int64_t start = 0;  // in ticks since the machine has started: the number of a process is used again
};

PLEXAURA_API ProcessState process_state(int process);

}  // namespace plexaura
