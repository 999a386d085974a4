#pragma once

#include "core/exchange/collective.h"
#include "models/config/config.h"
#include "training/loop/trainer_options.h"

namespace plexaura {

// The mode --find-lr: sweeps the learning rate, and prints a row for each step and the rate at which the loss falls
// fastest, on rank 0. A signal ends it early: it prints nothing then, and returns the signal, and otherwise 0. All
// ranks call it together. Throws UserError if the loss falls at no rate, for training.optimizer.base_batch_size, and as
// sweep_learning_rates() does.
int find_learning_rate(Collective& ranks, const Config& config, const TrainerParts& parts,
                       const TrainerOptions& options);

}  // namespace plexaura
