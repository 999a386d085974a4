#pragma once

#include <chrono>

namespace plexaura {

// Returns the seconds of a clock that never goes back. Only differences have a meaning.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace plexaura
