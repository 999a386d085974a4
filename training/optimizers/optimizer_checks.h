#pragma once

#include "training/optimizers/optimizer_spec.h"

namespace plexaura {

inline bool steps_like_sgd(OptimizerSpec::Kind kind) {
  return kind == OptimizerSpec::sgd || kind == OptimizerSpec::lars;
}
inline bool divides_by_squares(OptimizerSpec::Kind kind) {
  return kind == OptimizerSpec::rmsprop || kind == OptimizerSpec::adagrad;
}
inline bool scales_each_parameter(OptimizerSpec::Kind kind) {
  return kind == OptimizerSpec::lars || kind == OptimizerSpec::lamb;
}
inline bool has_momentum(OptimizerSpec::Kind kind) {
  return steps_like_sgd(kind) || kind == OptimizerSpec::rmsprop;
}

// Throws UserError that names the first option with an invalid value. Does not check the groups.
void check_spec(const OptimizerSpec& optimizer);

// Throws UserError for a number outside its range, and for an optimizer of the group with an option that is invalid or
// that would have no effect.
void check_group(const ParameterGroup& group);

}  // namespace plexaura
