#pragma once

#include <optional>

#include "training/loop/run.h"

namespace plexaura {

// Loads the newest checkpoint: see Trainer::resume(). Returns its state; empty if there is none.
std::optional<RunState> resume(Run& run);

// See Trainer::regroup() and Trainer::step_aside().
void regroup(Run& run, Collective& ranks, Strategy* strategy, const std::optional<TakenParts>& taken);
void step_aside(Run& run);

}  // namespace plexaura
