#pragma once

#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// Returns Candidate::reads for host kernels that compute a region one node after another: false for an input
// whose elements no node reads; see OpTraits::unread_inputs.
PLEXAURA_API std::vector<bool> inputs_read(const RegionQuery& query);

}  // namespace plexaura
