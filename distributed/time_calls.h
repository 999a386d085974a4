#pragma once

#include <functional>
#include <string_view>

#include "distributed/communicator.h"

namespace plexaura {

// The median of several times that this rank measures, on the rank where that is longest: the same on all of them.
// Collective.
double time_of(Communicator& ranks, int times, const std::function<double()>& timed, std::string_view what);

}  // namespace plexaura
