#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/params/weights_immigration.h"
#include "core/ranks/collective.h"

namespace plexaura {

// What a checkpoint keeps of a strategy: tensors named "shared.NAME", and "rank2.NAME" of one rank alone.
using SavedStrategy = std::vector<std::pair<std::string, Tensor>>;

// Of all ranks, on rank 0, and nothing on the others. Collective. UserError on all of them for two parts of one
// name, or a name that cannot be one.
SavedStrategy gather_strategy_state(Collective& ranks, const std::vector<StrategyState>& mine);

// Drops what other ranks have of their own.
void keep_state_of(int rank, SavedStrategy& saved);

// What is to be given back to one rank; `of_ranks`: what each has of its own, too, because there are as many as were.
std::vector<StrategyState> strategy_state_of(const SavedStrategy& saved, int rank, bool of_ranks);

}  // namespace plexaura
