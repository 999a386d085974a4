#pragma once

#include <memory>

#include "core/device/backend.h"
#include "core/export.h"

namespace plexaura {

// Device memory for intermediate values. Programs that never run at the same time share one; it must be as
// large as the largest.
class PLEXAURA_API Workspace {
 public:
  Workspace(Backend& backend, std::size_t bytes);
  Address address() const { return memory_->address(); }
  std::size_t bytes() const { return memory_->bytes(); }

 private:
  std::unique_ptr<Memory> memory_;
};

}  // namespace plexaura
