#pragma once

#include <string>

#include "models/config/config.h"
#include "training/loop/trainer.h"

namespace plexaura {

// Returns a sentence about what training.memory has changed and what that costs; empty without a limit.
std::string memory_sentence(const Trainer& trainer, const TrainerOptions& options);

// Returns the error that a step needs more than training.memory, with the position of the key.
UserError memory_error(const Config& config, const StepMemoryError& error);

}  // namespace plexaura
