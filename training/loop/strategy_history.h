#pragma once

#include "training/loop/run.h"

namespace plexaura {

// The life of a strategy in a run, and what it hands on to the next one. All ranks call these functions together.

void begin_strategy(Run& run);
// Gives the strategy its state: that of a checkpoint, or that of the strategy before it.
void give_strategy_state(Run& run);
// What a checkpoint keeps of it.
SavedStrategy gather_state_of_strategy(Run& run);
// When ranks were lost, while the programs of the former strategy exist: keeps its state if the next one wants it.
void keep_own_state(Run& run, const StrategyInUse& next);
// UserError if the run cannot go on without the ranks that were lost.
void check_outlives_ranks(const Run& run);
// Whether all ranks compute the same update with the same kernels. What a strategy shows instead of the weights is not compared.
bool ranks_stay_equal(const Run& run);

}  // namespace plexaura
