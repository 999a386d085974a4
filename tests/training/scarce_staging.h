#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "core/base/error.h"
#include "core/device/forwarding_backend.h"

namespace plexaura::testing {

// A backend without memory for copies while `is_used_up` is set.
class ScarceStaging final : public ForwardingBackend {
 public:
  // With `host_memory` false, the host reads each value by a copy.
  ScarceStaging(Backend& backend, bool host_memory) : ForwardingBackend(backend), info_(backend.info()) {
    info_.host_memory = host_memory;
  }

  const BackendInfo& info() const override { return info_; }
  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) override {
    if (use == MemoryUse::staging && is_used_up) throw UserError("this rank has no memory for copies");
    return ForwardingBackend::allocate(bytes, use);
  }

  std::atomic<bool> is_used_up = false;

 private:
  BackendInfo info_;
};

}  // namespace plexaura::testing
