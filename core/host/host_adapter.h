#pragma once

#include <memory>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

// Host kernels as kernels of a backend, for every backend whose code can run on host addresses: the region's
// ops are computed one after another on row-major memory; values in another layout are converted through the
// workspace, with zero padding. Reorders are done here for all of them.

// The layout that the backend likes for a value.
using PreferredLayout = Layout (*)(const TensorType& type);

Layout row_major_layout(const TensorType& type);

// One candidate, or none where an op of the region has no host kernel. Its launches take host addresses and
// are done when run() returns.
std::vector<Candidate> propose_host_kernel(const RegionQuery& query,
                                           PreferredLayout preferred = row_major_layout);

}  // namespace plexaura
