#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/exchange/collective.h"
#include "core/exchange/strategy.h"
#include "core/params/parameter_store.h"

namespace plexaura {

// What a checkpoint keeps of a strategy: tensors named "shared.NAME", and "rank2.NAME" of one rank alone. Where each
// rank trains for itself, of all ranks but 0, whose store the checkpoint has, also the optimizer's state as
// "rank2.store/state0/NAME" and, where the ranks differ in them, weights and buffers as "rank2.store/value/NAME".
using SavedStrategy = std::vector<std::pair<std::string, Tensor>>;

// Its tensors; of null, which a strategy without state has, none.
std::vector<StrategyState> state_of_strategy(const KeptState* kept);

// Of all ranks, on rank 0, and nothing on the others. `own`: the store of a rank that trains for itself; else null.
// Collective. UserError on all of them for two parts of one name, or a name that cannot be one.
SavedStrategy gather_strategy_state(Collective& ranks, const std::vector<StrategyState>& mine,
                                    const ParameterStore* own = nullptr);

// Whether a tensor of a checkpoint, by its name, is of use to this rank: not what other ranks have of their own.
bool is_state_of(int rank, std::string_view name);

// Writes what a rank had in a store of its own to the store, which already holds that of rank 0.
void take_own_store(const SavedStrategy& saved, int rank, ParameterStore& store);

// What is to be given back to the strategy of one rank; `of_ranks`: what each has of its own, too, because there are as many as were.
std::vector<StrategyState> strategy_state_of(const SavedStrategy& saved, int rank, bool of_ranks);

}  // namespace plexaura
