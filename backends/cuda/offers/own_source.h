#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/engine/device.h"

namespace plexaura::cuda {

// Offers the plugin's own kernels for an op or a region. They take row-major values and, if inputs have that
// layout, images with channels last. Throws UserError for a value with too many axes.
std::vector<Candidate> propose_own(const std::shared_ptr<Device>& device, const RegionQuery& query);

}  // namespace plexaura::cuda
