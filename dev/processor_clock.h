#pragma once

#include <ctime>

namespace plexaura {

// Returns the seconds that all threads of this process have computed.
inline double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace plexaura
