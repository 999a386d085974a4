#pragma once

#include <exception>
#include <string>

#include "training/loop/run.h"

namespace plexaura {

// The parts of a step that the loops of all protocols share.

// Waits for the data of the next step and returns it.
Step next_step(const Run& run, StepSource& steps);
// Launches the next step and advances Run::progress. `failure` is this rank's own failure, or null; with it `data` is
// empty. If something fails after the update, the step is counted all the same, so that no update is made twice.
// `begin`: when the step began, in seconds. `ends_epoch`: all ranks end the epoch with this step.
LaunchedStep launch(Run& run, Step data, std::exception_ptr failure, double begin, bool ends_epoch);
// True for a step whose gradients are looked at, once it is noted and before the next one is launched: the first two of a
// run. With strategies that change them later, or not before the update, none is.
bool shows_gradients(const Run& run, std::int64_t step);
// Adds the metrics of a step to the sums of the epoch, and gives its record to the observers.
void note(Run& run, const LaunchedStep& step);
// Throws on all ranks if an observer of any rank has thrown. All ranks call it together, after the last step of an epoch
// or of the run: otherwise the next step would report this.
void check_reported(Run& run);
// Throws UserError if the loss is not finite. Called before anything is saved, so that good checkpoints are kept.
void check_loss(double loss, const std::string& name);

}  // namespace plexaura
