#pragma once

#include "distributed/communicator/communicator.h"

namespace plexaura::testing {

// Prints how long each strategy takes to exchange gradients of several sizes, as in a step. Tests nothing.
// Collective.
void measure_exchanges(Communicator& ranks);

}  // namespace plexaura::testing
