#pragma once

#include <functional>

#include "distributed/communicator/communicator.h"

namespace plexaura {

// The main function of a program that may run as several ranks: makes the communicator, runs `body`, and
// closes the communicator. Exactly one rank prints an error of the body (see speaks()). It prints before the
// ranks leave, because mpirun ends the job with the first process that returns a status other than 0. Returns
// the status that the body returns, 2 for a UserError, or 1 for any other exception.
int run_ranks(const CommunicatorOptions& options, const std::function<int(Communicator&)>& body);

}  // namespace plexaura
