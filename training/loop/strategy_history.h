#pragma once

#include "training/loop/run.h"

namespace plexaura {

// The beginning of a strategy in a run, the state that it gets, and the state that it passes on to a
// checkpoint or to the next strategy. All ranks call these functions together.

void begin_strategy(Run& run);
// Gives the strategy its state, from a checkpoint or from the former strategy.
void give_strategy_state(Run& run);
// Returns the strategy's state of all ranks, for a checkpoint.
SavedStrategy gather_state_of_strategy(Run& run);
// After ranks were lost, and while the programs of the former strategy still exist: keeps its state if the next strategy
// has local scope.
void keep_own_state(Run& run, const StrategyInUse& next);
// Throws UserError if the run cannot continue without the ranks that were lost.
void check_outlives_ranks(const Run& run);
// True if all ranks compute the same update with the same kernels. False for a strategy that shows other weights than
// those that are trained.
bool ranks_stay_equal(const Run& run);

}  // namespace plexaura
