#pragma once

#include <string>

#include "training/loop/trainer.h"

namespace plexaura {

// Returns a sentence about what training.memory has changed and what that costs; empty without a limit.
std::string memory_sentence(const Trainer& trainer, const TrainerOptions& options);

}  // namespace plexaura
