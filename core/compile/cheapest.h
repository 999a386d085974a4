#pragma once

#include <functional>
#include <span>

#include "core/compile/tuner.h"
#include "core/device/backend.h"

namespace plexaura {

// Returns the candidate that takes the least time, including `seconds_beside`: the time of the reorders that it needs.
// Estimates choose the layouts of the outputs. Among the candidates with these layouts, the times of `tuner` decide if it
// has any. If `tuner` is null, only estimates count. `candidates` must not be empty.
const Candidate& cheapest(Backend& backend, Tuner* tuner, const RegionQuery& query,
                          std::span<const Candidate> candidates,
                          const std::function<double(const Candidate&)>& seconds_beside);

}  // namespace plexaura
