#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/exchange/collective.h"
#include "core/exchange/strategy.h"
#include "core/params/parameter_store.h"

namespace plexaura {

// The state of a strategy in a checkpoint, as names and tensors; the file writes "strategy." before each name.
// A tensor of all ranks is named "shared.NAME", and a tensor of one rank, such as rank 2, "rank2.NAME". If each
// rank trains by itself, the checkpoint's own weights and optimizer state are those of rank 0. For each other
// rank, the optimizer's state is added here as "rank2.store/state0/NAME" and, if weights differ between ranks,
// weights and buffers as "rank2.store/value/NAME".
using SavedStrategy = std::vector<std::pair<std::string, Tensor>>;

// Returns the state of a strategy; empty for null, which means that the strategy has no state.
std::vector<StrategyState> state_of_strategy(const KeptState* kept);

// Collective. Returns the state of all ranks on rank 0, and nothing on other ranks. `own` is the store of a
// rank that trains by itself; otherwise null. Throws UserError on all ranks for two parts with one name, and
// for an invalid name.
SavedStrategy gather_strategy_state(Collective& ranks, const std::vector<StrategyState>& mine,
                                    const ParameterStore* own = nullptr);

// Collective. Does the same with the state that `kept` returns; null: no state. Throws on all ranks if one fails.
SavedStrategy gather_strategy_state(Collective& ranks, const KeptState* kept,
                                    const ParameterStore* own = nullptr);

// True if this rank needs the checkpoint's tensor with this name; false for tensors of other ranks.
bool is_state_of(int rank, std::string_view name);

// Writes to the store the weights and state that this rank had in a store of its own. The store already
// contains those of rank 0.
void take_own_store(const SavedStrategy& saved, int rank, ParameterStore& store);

// Returns the state that the strategy of one rank gets back. With `of_ranks`, includes the tensors that
// belong to that rank alone (StrategyState::of_rank).
std::vector<StrategyState> strategy_state_of(const SavedStrategy& saved, int rank, bool of_ranks);

// Restores the strategy of one rank from a checkpoint: `kept` takes strategy_state_of(). Does nothing if the checkpoint has
// no state of a strategy, or if `kept` is null.
void restore_strategy_state(const SavedStrategy& saved, int rank, bool of_ranks, KeptState* kept);

}  // namespace plexaura
