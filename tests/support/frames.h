#pragma once

#include <execinfo.h>
#include <vector>

namespace plexaura::testing {

// Returns the addresses to which the running functions return: the first one is in the caller of this function,
// the last one in the function that has begun the thread or the program.
__attribute__((noinline)) inline std::vector<void*> frames_around() {
  std::vector<void*> frames;
  int count = 0;
  while (count == std::ssize(frames)) {
    frames.resize(frames.size() + 128);
    count = backtrace(frames.data(), static_cast<int>(frames.size()));
  }
  return {frames.begin() + 1, frames.begin() + count};
}

}  // namespace plexaura::testing
