#pragma once

#include <memory>

#include "core/base/export.h"
#include "core/device/backend.h"
#include "core/vm/feed_memory.h"

namespace plexaura {

// Device memory for intermediate values, and the memory from which runs are fed. Programs that never run at the same time
// may share one workspace, which must be large enough for each of them.
class PLEXAURA_API Workspace {
 public:
  // `feed_bytes` is the largest Program::feed_bytes. If it is smaller than a program needs, that program gets slots of its
  // own.
  Workspace(Backend& backend, std::size_t bytes, std::size_t feed_bytes = 0);
  Address address() const { return memory_->address(); }
  std::size_t bytes() const { return memory_->bytes(); }
  FeedMemory& feeds() { return feeds_; }

 private:
  std::unique_ptr<Memory> memory_;
  FeedMemory feeds_;
};

}  // namespace plexaura
