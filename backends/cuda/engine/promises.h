#pragma once

#include <deque>
#include <mutex>
#include <vector>

#include "backends/cuda/engine/pinned.h"
#include "backends/cuda/runtime/runtime.h"

namespace plexaura::cuda {

// A flag, and the value to which the host or a stream will raise it, once.
struct Promise {
  runtime::Flag* flag;
  runtime::Flag value;
};

// The flags of a device. A flag that a stream has yet to raise is not reused: the stream could overwrite a
// later value that the host has set. Any thread may call make().
class Promises {
 public:
  Promise make();

 private:
  std::mutex mutex_;
  std::deque<Pinned> pages_;
  std::vector<Promise> last_;  // last promise of each flag
};

}  // namespace plexaura::cuda
