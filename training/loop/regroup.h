#pragma once

#include "training/loop/run.h"

namespace plexaura {

// See Trainer::regroup() and Trainer::step_aside().
void regroup(Run& run, Collective& ranks, Strategy* strategy, const std::optional<TakenParts>& taken);
void step_aside(Run& run);

}  // namespace plexaura
