#pragma once

#include <deque>
#include <mutex>
#include <vector>

#include "backends/cuda/engine/pinned.h"
#include "backends/cuda/runtime/runtime.h"

namespace plexaura::cuda {

// A flag will be raised to this value, once: by the host or by a stream.
struct Promise {
  runtime::Flag* flag;
  runtime::Flag value;
};

// The flags of a device. One that a stream has yet to raise is not given out again: otherwise that stream could put
// back the value to which the host has raised it since. Any thread.
class Promises {
 public:
  Promise make();

 private:
  std::mutex mutex_;
  std::deque<Pinned> pages_;
  std::vector<Promise> last_;  // of each flag
};

}  // namespace plexaura::cuda
