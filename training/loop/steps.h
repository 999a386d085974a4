#pragma once

#include <exception>
#include <string>

#include "training/loop/run.h"

namespace plexaura {

// What both loops do with a step.

// The next step of the data.
Step next_step(const Run& run, StepSource& steps);
// Launches the step after the last one. With `failure`, which is this rank's, there is no data. Counts the step before anything after
// its update can fail: no update is made twice. With `ends_epoch` all ranks have come to the end of the epoch.
LaunchedStep launch(Run& run, const Step& data, std::exception_ptr failure, double begin, bool ends_epoch);
// Adds a step whose metrics are known to the figures of the epoch, and gives its record to the observers.
void note(Run& run, const LaunchedStep& step);
// All ranks together: throws what the observers of any rank have met. After the last step of an epoch or of the run no other step says
// it.
void check_reported(Run& run);
// Comes before anything is saved, so that a good checkpoint stays. Throws UserError for a loss that is not finite.
void check_loss(double loss, const std::string& name);

}  // namespace plexaura
