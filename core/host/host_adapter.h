#pragma once

#include <memory>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// Offers host kernels as kernels of a backend, for host calls and for every backend whose code can run
// on host addresses. The region's ops are computed one after another on row-major memory. Values in other
// layouts are converted in the workspace, with zero padding. Reorders are also done here.

// Returns the layout that the backend prefers for a value.
using PreferredLayout = Layout (*)(const TensorType& type);

PLEXAURA_API Layout row_major_layout(const TensorType& type);

// Returns one candidate, or none if an op of the region has no host kernel. Its launches take host addresses,
// and are done when run() returns.
PLEXAURA_API std::vector<Candidate> propose_host_kernel(const RegionQuery& query,
                                                        PreferredLayout preferred = row_major_layout);

// Returns a kernel that computes a region of one op, whose operands are row-major, by `kernel` instead of the op's own
// host kernel.
PLEXAURA_API std::shared_ptr<const Kernel> make_host_kernel(const RegionQuery& query,
                                                            const Candidate& candidate, HostKernel kernel);

}  // namespace plexaura
