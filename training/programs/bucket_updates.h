#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "core/exchange/strategy.h"
#include "training/optimizers/optimizer_spec.h"

namespace plexaura {

// Returns why a strategy that declares updates_late gets no late updates, as a text that continues a sentence
// after "because". Empty if it gets them. `gradients` is any gradient program of the run. `is_weighted` is
// true if the model has a LossOutputs::weight.
std::string why_not_late(const StrategyParts& parts, const OptimizerSpec& optimizer, const ArenaTypes& types,
                         bool watch, const Program& gradients, bool is_weighted = false);

// Compiles the update of each bucket for TrainingStep::update_late(). For `replaced` see replaced_buffers().
std::vector<std::shared_ptr<const Program>> compile_bucket_updates(
    const OptimizerSpec& optimizer, const Placement& placement, std::span<const Bucket> buckets,
    const std::set<std::string>& replaced, Backend& backend, Tuner* tuner, bool strict = false);

}  // namespace plexaura
