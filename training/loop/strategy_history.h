#pragma once

#include "training/loop/run.h"

namespace plexaura {

// The beginning of a strategy in a run, the state that it gets, and the state that it passes on to a
// checkpoint or to the next strategy. All ranks call these functions together.

void begin_strategy(Run& run);
// Gives the strategy its state, from a checkpoint or from the former strategy.
void give_strategy_state(Run& run);
// Returns on rank 0 what a checkpoint keeps of the strategies of all ranks, and nothing on other ranks. With
// local scope it also contains the optimizer state of each other rank, and its weights if they differ.
SavedStrategy gather_state_of_strategy(Run& run);
// After ranks were lost, and while the programs of the former strategy still exist: keeps its state if the next strategy
// has local scope.
void keep_own_state(Run& run, const StrategyInUse& next);
// Throws UserError if the run cannot continue without the ranks that were lost.
void check_outlives_ranks(const Run& run);
// Returns true if several ranks compute the same update with the same kernels, and so keep equal weights.
// Returns false for one rank, for local scope, and for a strategy that realigns weights or shows other
// weights than those that are trained.
bool ranks_stay_equal(const Run& run);

}  // namespace plexaura
