#pragma once

#include "core/device/backend.h"

namespace plexaura {

// Blocking copies through staging memory that is allocated once. A copy begins after all work that is in the
// compute stream at the call. Only one copy at a time is possible.
class PLEXAURA_API StagedCopy {
 public:
  StagedCopy(Backend& backend, std::size_t most_bytes);
  std::byte* host() const { return staging_->address(); }
  void to_host(Address src, std::size_t bytes);
  void to_device(Address dst, std::size_t bytes);

 private:
  void wait();

  Backend& backend_;
  std::unique_ptr<Memory> staging_;
  std::unique_ptr<Event> done_;
};

// Blocking copies for the time between runs. Each call allocates staging memory, if the device has its own memory.
PLEXAURA_API void copy_to_host(Backend& backend, std::byte* dst, Address src, std::size_t bytes);
PLEXAURA_API void copy_to_device(Backend& backend, Address dst, const std::byte* src, std::size_t bytes);
// Writes zeros. Copies up to 64 KiB of them from the host, and the rest within the device.
PLEXAURA_API void write_zeros(Backend& backend, Address dst, std::size_t bytes);

// Copies whole values, which are row-major on the host and have `layout` on the device.
PLEXAURA_API Tensor read_value(Backend& backend, Address src, const TensorType& type, const Layout& layout);
PLEXAURA_API void write_value(Backend& backend, Address dst, const Layout& layout, const Tensor& value);

// Waits until all work of the compute stream is done. Throws its failure.
PLEXAURA_API void wait_for(Backend& backend);

// Waits until both streams are empty, and ignores failures. Call it before memory is freed that copies may
// still use.
PLEXAURA_API void drain(Backend& backend) noexcept;

}  // namespace plexaura
