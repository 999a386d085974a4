#pragma once

#include <memory>

#include "training/data/stream_steps.h"
#include "training/loop/run.h"

namespace plexaura {

// A run on TrainerParts::stream. It ends on all ranks with the last step for which the streams of all ranks have samples.

// Throws UserError for missing and impossible options, for options that have no effect with a stream or without one, and
// for a strategy that does not let each rank read its own samples of each step.
void check_stream(const TrainerParts& parts, const TrainerOptions& options, const StrategyParts& strategy);

// Returns the steps of this rank's stream from the run's present place on.
std::unique_ptr<StreamSteps> make_stream_steps(const Run& run);

// Called by all ranks together before the first step. Opens the streams, and passes over the samples that the run has used,
// for which it may take any time. Returns false if there is no step, which ends the run: a resumed run has used all
// samples, or a reader was interrupted. In the first case an epoch that has begun ends, with its validation and a checkpoint. Throws UserError on all ranks if a run
// that was not resumed has no step.
bool begin_stream(Run& run, StreamSteps& steps);

// Called by all ranks together for each step before its launch. Returns true, and lets the run end, if the stream of a
// rank has no samples for the step after that step. Lets the run end and returns false if a reader was interrupted. Reads the samples of that later step here, unless the run ends before
// it.
bool ends_with_stream(Run& run, StreamSteps& steps);

// Counts the samples of a step that was launched.
void count_streamed(Run& run);

}  // namespace plexaura
