#pragma once

#include <memory>

#include "backends/cuda/engine/device.h"
#include "core/device/backend.h"

namespace plexaura::cuda {

// The candidate with kernels that are recorded together with the bytes that they use.
Candidate with_uses(std::shared_ptr<Device> device, const RegionQuery& query, Candidate candidate);

}  // namespace plexaura::cuda
