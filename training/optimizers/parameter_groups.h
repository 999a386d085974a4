#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ops/optimizer_steps.h"
#include "core/params/parameter_store.h"

namespace plexaura {

struct OptimizerSpec;

// The optimizer of a group of parameters. A value: copies share the OptimizerSpec, which never changes.
class GroupOptimizer {
 public:
  GroupOptimizer() = default;
  GroupOptimizer(const OptimizerSpec& spec);
  // Returns the group's own optimizer, or null if the group has the same optimizer as parameters without a
  // group.
  const OptimizerSpec* spec() const { return spec_.get(); }

 private:
  std::shared_ptr<const OptimizerSpec> spec_;
};

// Trainable parameters whose updates have a learning rate, a weight decay or an optimizer of their own:
// `{"layer4.*", {.rate = 0.1}}`, `{"*.bias", {.decay = 0, .optimizer = OptimizerSpec{.momentum = 0.9}}}`. A parameter
// belongs to the first group of a list whose pattern fits it.
struct ParameterGroup {
  struct Options {
    double rate = 1;  // factor of the learning rate; > 0
    // Weight decay, >= 0; empty: the decay of the optimizer that has the groups.
    std::optional<double> decay = {};
    // The optimizer of the group. It has no weight decay, limit on gradients or groups of its own.
    GroupOptimizer optimizer = {};
  };

  std::string pattern;  // pattern of parameter names and aliases, see is_named_like()
  Options options = {};
};

// Returns a group for each trainable parameter that belongs to a group of the list. Its pattern is the name of the
// parameter. Throws UserError for what check_group() refuses, and for a group without parameters: because its
// pattern fits no parameter or only frozen ones, or because the groups before it have all of them.
std::vector<ParameterGroup> groups_by_name(std::span<const ParameterGroup> groups,
                                           const std::vector<ParameterSpec>& specs);

// Returns the options of a parameter's group, with its decay set. For a parameter without a group, returns
// the rate 1 and `weight_decay`.
ParameterGroup::Options group_of(std::string_view name, std::span<const ParameterGroup> groups,
                                 double weight_decay);

// Returns the segments of a bucket: neighbours with the same decay and rate share a segment. Empty if nothing decays
// and all rates are 1.
std::vector<StepSegment> segments_of(const Placement& placement, const Bucket& bucket,
                                     std::span<const ParameterGroup> groups, double weight_decay);

}  // namespace plexaura
