#pragma once

#include <memory>

#include "backends/cuda/engine/device.h"
#include "core/device/backend.h"

namespace plexaura::cuda {

// Returns the candidate, with kernels that record the ranges of bytes that they read and write.
Candidate with_uses(std::shared_ptr<Device> device, const RegionQuery& query, Candidate candidate);

}  // namespace plexaura::cuda
