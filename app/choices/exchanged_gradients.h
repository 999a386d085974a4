#pragma once

#include <vector>

#include "core/params/parameter_store.h"
#include "core/params/placement.h"

namespace plexaura {

// Of the gradients that ranks exchange, before there is a program that places them: the last layers first, as the backward pass
// finishes them.
Placement exchanged_gradients(const std::vector<ParameterSpec>& parameters, const ArenaTypes& types);

}  // namespace plexaura
