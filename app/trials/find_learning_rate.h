#pragma once

#include "core/exchange/collective.h"
#include "models/config/config.h"
#include "training/loop/trainer_options.h"

namespace plexaura {

// Runs the mode --find-lr: sweeps the learning rate. On rank 0 it prints a row for each step, and the rate at which the
// loss falls fastest. Returns 0. If a signal ends the sweep early, prints nothing, and returns the signal. All ranks call
// it together. Throws UserError if the loss falls by less than 5 %, for training.optimizer.base_batch_size, and what
// sweep_learning_rates() throws.
int find_learning_rate(Collective& ranks, const Config& config, const TrainerParts& parts,
                       const TrainerOptions& options);

}  // namespace plexaura
