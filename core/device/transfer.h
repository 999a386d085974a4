#pragma once

#include "core/device/backend.h"

namespace plexaura {

// Blocking copies through staging memory that is allocated once: everything that was enqueued before is done
// first. One copy at a time.
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

// The same for the time between runs; they allocate staging memory of their own.
PLEXAURA_API void copy_to_host(Backend& backend, std::byte* dst, Address src, std::size_t bytes);
PLEXAURA_API void copy_to_device(Backend& backend, Address dst, const std::byte* src, std::size_t bytes);
// Zeros, of which few come from the host.
PLEXAURA_API void write_zeros(Backend& backend, Address dst, std::size_t bytes);

// Whole values: row-major on the host, in `layout` on the device.
PLEXAURA_API Tensor read_value(Backend& backend, Address src, const TensorType& type, const Layout& layout);
PLEXAURA_API void write_value(Backend& backend, Address dst, const Layout& layout, const Tensor& value);

PLEXAURA_API void wait_for(Backend& backend);  // until the compute stream is empty; throws its failure

// Until both streams are empty, whatever failed: for what frees memory that copies under way may touch.
PLEXAURA_API void settle(Backend& backend) noexcept;

}  // namespace plexaura
