#pragma once

#include <memory>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// Host kernels as kernels of a backend, for host calls and every backend whose code can run on host addresses: the region's
// ops are computed one after another on row-major memory; values in another layout are converted through the
// workspace, with zero padding. Reorders are done here for all of them.

// Returns the layout that the backend prefers for a value.
using PreferredLayout = Layout (*)(const TensorType& type);

PLEXAURA_API Layout row_major_layout(const TensorType& type);

// One candidate, or none where an op of the region has no host kernel. Its launches take host addresses and
// are done when run() returns.
PLEXAURA_API std::vector<Candidate> propose_host_kernel(const RegionQuery& query,
                                                        PreferredLayout preferred = row_major_layout);

}  // namespace plexaura
