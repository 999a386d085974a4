#pragma once

#include "core/exchange/strategy.h"
#include "training/loop/trainer_options.h"

namespace plexaura {

// Checks that a Trainer makes before anything is compiled. Each throws UserError.
void check_parts(const TrainerParts& parts);
void check_options(const TrainerOptions& options);
// Refuses several ranks without a strategy, which would train independently without notice; a rank that serves instead
// of training; and whatever check_strategy_parts() refuses.
void check_strategy(const StrategyInUse& strategy, const Collective& ranks);

}  // namespace plexaura
