#pragma once

#include "distributed/communicator/communicator.h"

namespace plexaura::testing {

// No test: prints what each strategy takes to exchange gradients of several sizes, as a step would.
// Collective.
void measure_exchanges(Communicator& ranks);

}  // namespace plexaura::testing
