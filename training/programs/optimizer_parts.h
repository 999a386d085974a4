#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/params/parameter_store.h"

// What an Optimizer needs to train a part of the parameters of a store, beside others.
namespace plexaura {

// Returns the names of the trainable parameters that fit one of the patterns; all of them without patterns. Throws
// UserError for a pattern that fits none.
std::set<std::string> trained_parameters(const ParameterStore& store, std::span<const std::string> patterns);

// Returns a placement for the programs of several optimizers. Trainable are the parameters in `kept`, which are
// where they are in `present`, and those that are trainable in `added`. Layouts are those of `present`, except for
// the parameters that are trainable in `added`.
Placement placed_beside(const Placement& present, const std::set<std::string>& kept, const Placement& added);

// Returns the slices of the gradient arena that hold these trainable parameters, and the slice of buffers and tail.
std::vector<Bucket> buckets_of(const Placement& placement, const std::set<std::string>& parameters);

}  // namespace plexaura
