#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/params/parameter_store.h"
#include "core/vm/feed.h"

// Functions that an Optimizer needs to train a part of the parameters of a store, beside others.
namespace plexaura {

class Collective;

// The part of a store that a new Optimizer trains, and the parts that the store's other Optimizers train.
struct PartBesideOthers {
  TrainedPart part;
  std::vector<TrainedParts::Part> others;
};

// A batch counts as one sample, so that the loss gets no weight.
inline constexpr std::int64_t samples_of_loss = 1;

// Returns the extent of the longest first axis of the feeds, which counts as the number of samples for random numbers; 1
// if all feeds are scalars.
std::int64_t longest_first_axis(std::span<const Feed> feeds);

// Returns the names of the trainable parameters that fit one of the patterns; all of them without patterns. Throws
// UserError for a pattern that fits none.
std::set<std::string> trained_parameters(const ParameterStore& store, std::span<const std::string> patterns);

// Returns a placement for the programs of several optimizers. Its trainable parameters are those of the parts `kept`, and
// the trainable ones of `added`, for each element of which the new optimizer keeps `added_states` numbers. Parameters with
// more states come first, so that the arenas of the other states are short. The layouts are those in `present`, except for
// the trainable parameters of `added` and for parameters that `present` lacks, whose layouts are those in `added`.
Placement placed_beside(const Placement& present, std::span<const TrainedParts::Part> kept,
                        const Placement& added, std::int64_t added_states);

// Marks the store as used by this thread, until the result is destroyed. `function` names the call of the user in
// errors. Throws UserError if another thread is in a call of an Optimizer of the store.
InUse use_of(const ParameterStore& store, const char* function);

// Throws UserError on all ranks if these have found different checkpoints in the folder. `mine` is a text about the
// checkpoint of this rank.
void check_same_checkpoint(Collective& ranks, const std::string& mine,
                           const std::filesystem::path& directory);

// Returns the slices of the gradient arena that hold these trainable parameters, and the slice of buffers and tail.
std::vector<Bucket> buckets_of(const Placement& placement, const std::set<std::string>& parameters);

}  // namespace plexaura
