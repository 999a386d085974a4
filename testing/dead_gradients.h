#pragma once

#include <string>
#include <vector>

#include "core/compile/step_block.h"
#include "core/device/backend.h"
#include "core/graph/graph.h"
#include "core/vm/feed.h"

namespace plexaura {

// A parameter that a step cannot train.
struct DeadGradient {
  std::string parameter;
  std::string what;  // such as "is zero everywhere", "has NaN at element 3" or "does not exist"
  // The op that cut the gradient, with its source line. The gradient of its output is finite and not zero,
  // but the gradient that it passes on towards the parameter is dead.
  std::string cut_by;
};

// Returns a sentence such as "the gradient of 'fc1.weight' is zero everywhere, and the op that makes it so is
// multiply %7 of model.cpp:12".
std::string to_string(const DeadGradient& dead);

// Finds dead gradients: parameters whose gradient for one batch is zero in every element, or not finite.
// Names the op that made it so. It computes the loss and the gradients once and, if one is dead, once more
// with the gradients of all values between the parameters and the loss, which need as much memory as all of
// these values. The graph does not change. A gradient of zero can be correct: a layer whose outputs are
// multiplied by weights that begin as zeros gets no gradient in the first step.
//
// `values` has the value of each input, parameter and buffer that the loss needs, by name. `parameters` are
// the names of those to look at. Throws UserError, with the name, if a value is missing, is not needed or has
// another type.
std::vector<DeadGradient> find_dead_gradients(const Node& loss, const std::vector<Feed>& values,
                                              const std::vector<std::string>& parameters, Backend& backend,
                                              const StepBlock& block = {});

}  // namespace plexaura
