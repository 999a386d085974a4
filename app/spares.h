#pragma once

#include "app/options/command_line.h"
#include "app/options/run_config.h"
#include "distributed/communicator/communicator.h"
#include "models/config/config.h"

namespace plexaura {

// Collective over all ranks. Returns the number of spares: the last ranks, which train only after another
// rank has died. The environment variable PLEXAURA_SPARES contains this number; tools/run --spares sets the
// variable. Throws UserError if it is no valid number. Also throws if fewer than two ranks would train, since
// a spare gets its weights from a rank that is left.
int read_spares(Communicator& all);

// Throws UserError if spares can never take over: nothing is trained, all ranks end when one dies, each rank
// keeps its own weights, or a parameter server deals out the data. Also throws for automatic compression,
// since the ranks choose it without the spares.
void check_spares(int spares, const CommandLine& line, const Communicator& all, const Config& config,
                  const RunOptions& options);

// Collective over all ranks. Returns the number of ranks that share the cores of this machine: the ranks that
// train here or, if none does, the spares.
int ranks_that_compute_here(Communicator& all, int spares);

}  // namespace plexaura
