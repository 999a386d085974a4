#pragma once

#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// Candidate::reads of the host kernels that compute a region one node after another: an input that none of
// them looks at, wherever it stands, is not read.
PLEXAURA_API std::vector<bool> inputs_read(const RegionQuery& query);

}  // namespace plexaura
