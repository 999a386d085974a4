#pragma once

#include <string>
#include <vector>

#include "core/params/parameter_store.h"

namespace plexaura {

// Returns the trainable parameters whose gradient in the last step is zero in every element or, if the store has no loss
// scale, not finite: texts such as "'fc1.weight' is zero everywhere". Copies all gradients to the host.
std::vector<std::string> dead_gradients(const ParameterStore& store);

}  // namespace plexaura
