#pragma once

#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// Measures how many seconds each candidate for a region takes, on the device and the threads that will run
// it. The result is the shortest of several runs. Candidates run in turns, so that other load on the machine
// affects all of them alike. A candidate that is clearly slower than the best one runs only twice. If the
// device has its own memory, floating inputs are numbers from -1 to 1; all other inputs are zero. A candidate
// whose kernel cannot be made, or fails, gets infinite seconds. If all candidates fail, throws the first
// one's error.
PLEXAURA_API std::vector<double> measure(Backend& backend, const RegionQuery& query,
                                         std::span<const Candidate> candidates);

}  // namespace plexaura
