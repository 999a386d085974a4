#pragma once

#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// The seconds that each candidate for a region takes on the device and the threads that will run it: the
// least of several runs, taken in turns, so that whatever else the machine does strikes all alike. One that is
// clearly slower than the best runs twice only. Floating inputs of a device of its own are numbers of all sizes up to 1, and
// everything else is zero. A candidate whose kernel cannot be made or
// fails is infinitely slow; where all are, throws what the first of them threw.
PLEXAURA_API std::vector<double> measure(Backend& backend, const RegionQuery& query,
                                         std::span<const Candidate> candidates);

}  // namespace plexaura
