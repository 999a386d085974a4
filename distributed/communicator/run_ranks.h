#pragma once

#include <functional>

#include "distributed/communicator/communicator.h"

namespace plexaura {

// The main function of a program that may run as several ranks: makes the communicator, runs `body`, and ends
// it all in order. An error of the body is printed by exactly one rank (see speaks()) and gives the exit
// status; printing comes before ranks take leave of each other, since mpirun ends the job with the first
// process that returns a status other than 0. Returns what the body returns, 2 for a UserError, 1 for any
// other exception.
int run_ranks(const CommunicatorOptions& options, const std::function<int(Communicator&)>& body);

}  // namespace plexaura
