#pragma once

#include "app/setup.h"

namespace plexaura {

// Does the work of a rank after everything was read and compared: the rank trains, serves ranks that train,
// or waits as one of the `spares` last ranks. Returns the exit status.
int train_or_serve(const CommandLine& line, Communicator& ranks, Setup setup, int spares);

}  // namespace plexaura
