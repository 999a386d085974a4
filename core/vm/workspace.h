#pragma once

#include <memory>

#include "core/base/export.h"
#include "core/device/backend.h"
#include "core/vm/feed_memory.h"

namespace plexaura {

// Device memory for intermediate values, and what runs are fed from. Programs that never run at the same time share one;
// it must be as large as the largest.
class PLEXAURA_API Workspace {
 public:
  // `feed_bytes`: the largest of the programs; where it is less, a program makes slots of its own.
  Workspace(Backend& backend, std::size_t bytes, std::size_t feed_bytes = 0);
  Address address() const { return memory_->address(); }
  std::size_t bytes() const { return memory_->bytes(); }
  FeedMemory& feeds() { return feeds_; }

 private:
  std::unique_ptr<Memory> memory_;
  FeedMemory feeds_;
};

}  // namespace plexaura
