#pragma once

#include <string>

#include "training/loop/run.h"

namespace plexaura {

// The work of a run between its steps. All ranks call these functions together.

// Begins the strategy. Called before the first step.
void begin_run(Run& run);
// Ends an epoch or saves a checkpoint if that is due. Called before each step. Returns false at the end of
// the run.
bool prepare_step(Run& run);
// Ends the strategy and saves a checkpoint, unless the last step is already saved or this run has made none. Called after
// the last step.
void end_run(Run& run);
// Fills in the summary of TrainingResult. Called after end_run(). `rate` is in images per second of all
// ranks.
void summarize(Run& run, const StepSource& steps, double rate);

// Evaluates the validation data with the weights in the store, or with their averages if there are any.
Validation validate(Run& run);
// If Run::verifies is set, checks that all ranks hold the same weights and optimizer state.
void verify(Run& run);
// True if save_every demands a checkpoint after this step.
bool is_to_be_saved(const Run& run, std::int64_t step);
// True if a checkpoint is due now.
bool is_save_due(const Run& run);
// Calls check_loss() with a loss that is equal on all ranks, in such a way that only one of them prints the
// error.
void check_loss_of_all(Run& run, double loss, const std::string& name);

}  // namespace plexaura
