#pragma once

#include <string>

#include "models/config/config.h"
#include "training/loop/trainer.h"

namespace plexaura {

// Returns the memory of the intermediate values of a program, for --dry-run. The lower bound holds for the instructions of
// the program, so that it says nothing about other choices of instructions that run again.
std::string activations_text(const Program& program);

// Returns a sentence about what training.memory has changed and what that costs; empty without a limit.
std::string memory_sentence(const Trainer& trainer, const TrainerOptions& options);

// Returns the error that a step needs more than training.memory, with the position of the key.
UserError memory_error(const Config& config, const StepMemoryError& error);

}  // namespace plexaura
