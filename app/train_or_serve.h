#pragma once

#include "app/setup.h"

namespace plexaura {

// What a rank does once all is read and agreed: it trains, serves those that train, or stands by as one of the `spares` last ranks.
// Returns the exit status.
int train_or_serve(const CommandLine& line, Communicator& ranks, Setup setup, int spares);

}  // namespace plexaura
