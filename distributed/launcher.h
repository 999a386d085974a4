#pragma once

#include <optional>
#include <string>

namespace plexaura {

// What a launcher tells a process that it starts as a rank, before MPI begins.
struct LaunchedRank {
  int rank = 0;
  int ranks = 0;         // 0: it does not say
  std::string job = {};  // equal for all ranks; empty: it does not say
};

// Empty where the process was not started as a rank: by Open MPI's mpirun, other mpiruns, or srun with its PMIx or PMI
// plugin.
std::optional<LaunchedRank> launched_rank();

// Spares people a pause. When a rank returns a status other than 0, Open MPI's mpirun sleeps twice for
// odls_base_sigkill_timeout seconds and kills what is left of the job, even where nothing is left. A SIGCHLD
// ends such a sleep. To be called by each rank, when all have done their work and this process is about to end
// with such a status: mpirun may kill the others as soon as one has ended. Does nothing under other launchers.
void hurry_launcher();

}  // namespace plexaura
