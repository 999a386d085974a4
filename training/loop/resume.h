#pragma once

#include <optional>

#include "training/loop/run.h"

namespace plexaura {

// Loads the newest checkpoint: see Trainer::resume(). Returns its state; empty if there is none.
std::optional<RunState> resume(Run& run);

}  // namespace plexaura
