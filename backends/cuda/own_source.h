#pragma once

#include <memory>
#include <optional>

#include "backends/cuda/device.h"

namespace plexaura::cuda {

// The plugin's own kernel for a region of one node; empty where there is none. UserError for a value of too many axes.
std::optional<Candidate> propose_own(const std::shared_ptr<Device>& device, const RegionQuery& query);

}  // namespace plexaura::cuda
