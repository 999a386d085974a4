#pragma once

#include "core/device/backend.h"

namespace plexaura {

// Blocking copies for the time between runs: everything that was enqueued before is done first. They allocate
// staging memory.
PLEXAURA_API void copy_to_host(Backend& backend, std::byte* dst, Address src, std::size_t bytes);
PLEXAURA_API void copy_to_device(Backend& backend, Address dst, const std::byte* src, std::size_t bytes);
PLEXAURA_API void wait_for(Backend& backend);  // until the compute stream is empty; throws its failure

// Until both streams are empty, whatever failed: for what frees memory that copies under way may touch.
PLEXAURA_API void settle(Backend& backend) noexcept;

}  // namespace plexaura
