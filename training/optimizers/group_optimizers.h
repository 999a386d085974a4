#pragma once

#include <vector>

#include "core/params/placement.h"
#include "training/optimizers/optimizer_spec.h"

// Groups of parameters with optimizers of their own.
namespace plexaura {

// Returns the optimizer of the parameters in a group of `optimizer`.
const OptimizerSpec& rule_of(const ParameterGroup& group, const OptimizerSpec& optimizer);

// Neighbours in a bucket whose updates have the same rule. `rule` belongs to the OptimizerSpec that has the groups.
struct RuleSlice {
  Bucket slice;
  const OptimizerSpec* rule;
};

// Divides a bucket of trainable parameters. The slices cover it, in order.
std::vector<RuleSlice> slices_by_rule(const Placement& placement, const Bucket& bucket,
                                      const OptimizerSpec& optimizer);

// Returns the placement in which trainable parameters with the same rule are neighbours, so that a bucket has at most
// one slice of each rule. The rules are in the order of their first parameters, and the parameters of a rule keep
// their order.
Placement ordered_by_rule(const Placement& placement, const OptimizerSpec& optimizer);

}  // namespace plexaura
