#pragma once

#include <string>

#include "training/loop/run.h"

namespace plexaura {

// What all ranks of a run do together between steps.

// Before the first step: begins the strategy.
void begin_run(Run& run);
// Before each step: ends the epoch, or saves, where that is due. False at the end of the run.
bool goes_on(Run& run);
// After the last step: saves what is not saved yet.
void end_run(Run& run);
// After that. `rate`: images per second of all ranks.
void summarize(Run& run, const StepSource& steps, double rate);

// Under the weights that the store holds.
Validation validate(Run& run);
// Compares what the ranks hold, where they stay equal by themselves.
void verify(Run& run);
bool is_to_be_saved(const Run& run, std::int64_t step);
bool is_save_due(const Run& run);
// check_loss() of a loss over all ranks: one of them prints the error.
void check_loss_of_all(Run& run, double loss, const std::string& name);

}  // namespace plexaura
