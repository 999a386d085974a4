#pragma once

#include <string>
#include <vector>

#include "core/params/parameter_store.h"

namespace plexaura {

// Return texts about the trainable parameters whose gradient in the last step is zero in every element, such as
// "'fc1.weight' is zero everywhere", or not finite. With a loss scale the latter is usual, and the result is empty. Both
// functions copy all gradients to the host.
std::vector<std::string> zero_gradients(const ParameterStore& store);
std::vector<std::string> gradients_not_finite(const ParameterStore& store);

}  // namespace plexaura
