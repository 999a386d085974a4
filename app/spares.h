#pragma once

#include "app/options/command_line.h"
#include "app/options/run_config.h"
#include "distributed/communicator/communicator.h"
#include "models/config/config.h"

namespace plexaura {

// How many of the ranks that were started begin as spares, which train when one of the others dies: the last ones. The
// variable PLEXAURA_SPARES says so, which tools/run --spares sets. UserError where it is no such number, or leaves fewer than
// two ranks to train: a spare takes its weights from one that is left. Collective over all ranks.
int read_spares(Communicator& all);

// UserError where there are spares that nobody could need: nothing is trained, or all ranks end when one dies.
void check_spares(int spares, const CommandLine& line, const Communicator& all, const Config& config,
                  const RunOptions& options);

// Among how many ranks the cores of this machine are divided: those that train here, or the spares where none does.
// Collective over all ranks.
int ranks_that_compute_here(Communicator& all, int spares);

}  // namespace plexaura
