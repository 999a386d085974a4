#pragma once

#include <exception>
#include <string>

#include "training/loop/run.h"

namespace plexaura {

// The parts of a step that the loops of all protocols share.

// Waits for the data of the next step and returns it.
Step next_step(const Run& run, StepSource& steps);
// Launches the next step and advances Run::progress. `failure` is this rank's own failure, or null; with it
// `data` is empty. If something fails after the update, the step is still counted, so that no update is made
// twice. `begin` is the time when the step began, in seconds. `ends_epoch` is true if all ranks end the epoch
// with this step.
LaunchedStep launch(Run& run, Step data, std::exception_ptr failure, double begin, bool ends_epoch);
// True for a step after which the trainer looks for dead gradients, before it launches the next step: the first two
// steps of a run. False for all steps with local scope, if the strategy exchanges weights, or if it updates late: then
// the store need not hold the gradients of the whole step.
bool shows_gradients(const Run& run, std::int64_t step);
// Adds the metrics of a step to the sums of the epoch, and passes the step's record to the observers.
void note(Run& run, const LaunchedStep& step);
// Throws on all ranks if an observer of any rank has thrown. All ranks call it together, after the last step of an
// epoch or of the run and before a checkpoint, where no next step can report the exception in time.
void check_reported(Run& run);
// Throws UserError if the loss is not finite. Called before anything is saved, so that good checkpoints are kept.
void check_loss(double loss, const std::string& name);

}  // namespace plexaura
