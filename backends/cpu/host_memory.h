#pragma once

#include <cstddef>

#include "core/device/backend.h"

namespace plexaura {

// Memory straight from the system: aligned to 2 MiB, on huge pages where it is large enough for them (first
// touch is then several times faster), and touched by all threads, so that no step pays for a page fault and
// pages lie near the threads that will use them.
class HostMemory final : public Memory {
 public:
  // Throws DeviceError that says what was asked and what there is.
  explicit HostMemory(std::size_t bytes);
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  Address address() const override { return address_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  std::size_t bytes_;   // as asked for
  std::size_t mapped_;  // whole pages
  Address address_ = nullptr;
};

}  // namespace plexaura
