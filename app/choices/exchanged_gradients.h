#pragma once

#include <vector>

#include "core/params/parameter_store.h"
#include "core/params/placement.h"

namespace plexaura {

// Returns a placement of the gradients that ranks exchange, for use before a program has placed them. The
// last layers come first, as the backward pass finishes them.
Placement exchanged_gradients(const std::vector<ParameterSpec>& parameters, const ArenaTypes& types);

}  // namespace plexaura
