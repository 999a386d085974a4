#pragma once

#include <cstddef>

#include "core/device/backend.h"

namespace plexaura {

// Memory from the operating system, aligned to a page. From 2 MiB on it is aligned to 2 MiB and asks for huge pages, which
// makes the first touch several times faster. The constructor touches all pages, so that no step has page faults. Of more
// than 1 MiB each thread touches a share, so that pages lie near the threads that will use them.
class HostMemory final : public Memory {
 public:
  // Allocates the memory. Throws DeviceError, whose message has the requested and the available size.
  explicit HostMemory(std::size_t bytes);
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  Address address() const override { return address_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  std::size_t bytes_;   // size that was requested, in bytes
  std::size_t mapped_;  // size in whole pages, in bytes
  Address address_ = nullptr;
};

}  // namespace plexaura
