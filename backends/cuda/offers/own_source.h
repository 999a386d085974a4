#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/engine/device.h"

namespace plexaura::cuda {

// The plugin's own kernels for an op, or for a region of batch norm: over row-major values and, where inputs come so, over
// images that lie channels last. UserError for a value of too many axes.
std::vector<Candidate> propose_own(const std::shared_ptr<Device>& device, const RegionQuery& query);

}  // namespace plexaura::cuda
