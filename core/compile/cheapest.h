#pragma once

#include <functional>
#include <span>

#include "core/compile/tuner.h"
#include "core/device/backend.h"

namespace plexaura {

// The candidate that takes the least time together with what has to be done beside it, reorders. Estimates
// choose the layouts of the outputs; of the candidates that give these, the tuner's times decide where it has
// any. Without a tuner estimates decide alone. There is at least one candidate.
const Candidate& cheapest(Backend& backend, Tuner* tuner, const RegionQuery& query,
                          std::span<const Candidate> candidates,
                          const std::function<double(const Candidate&)>& seconds_beside);

}  // namespace plexaura
