#pragma once

#include <span>
#include <vector>

#include "core/device/backend.h"
#include "core/export.h"

namespace plexaura {

// The seconds that each candidate for a region takes on the device and the threads that will run it: the
// least of several runs, taken in turns, so that whatever else the machine does strikes all alike. Operands
// are zero. Throws what making and running a kernel throws.
PLEXAURA_API std::vector<double> measure(Backend& backend, const RegionQuery& query,
                                         std::span<const Candidate> candidates, bool accumulate);

}  // namespace plexaura
