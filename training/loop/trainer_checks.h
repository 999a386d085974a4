#pragma once

#include "core/exchange/strategy.h"
#include "training/loop/trainer_options.h"

namespace plexaura {

// What a Trainer refuses before anything is compiled, each with a UserError.
void check_parts(const TrainerParts& parts);
void check_options(const TrainerOptions& options);
// Ranks that would train apart in silence, a rank that does not train, and what check_strategy_parts() refuses.
void check_strategy(const StrategyInUse& strategy, const Collective& ranks);

}  // namespace plexaura
