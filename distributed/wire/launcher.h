#pragma once

#include <optional>
#include <string>

namespace plexaura {

// What a launcher tells a process that it starts as a rank, before MPI begins.
struct LaunchedRank {
  int rank = 0;
  int ranks = 0;             // 0: it does not say
  std::string job = {};      // equal for all ranks; empty: it does not say
  std::string source = {};   // the variable that tells the number of ranks
  bool is_connected = true;  // there is something through which MPI finds the other ranks
};

// Empty where the process was not started as a rank: by Open MPI's mpirun, other mpiruns, or srun. A shell of salloc and the script
// of a batch job are no ranks, whatever tasks the job may have. srun without its PMIx or PMI plugin does not connect its tasks.
std::optional<LaunchedRank> launched_rank();

// The number of the process that has started this one as a rank: Open MPI's mpirun, or on other machines its daemon. 0 where there is
// none.
int launcher_process();

// The folder on this machine that tools/run names in this variable for files of the run. Empty where there is none, as on other
// machines, and where somebody else has made one of that name or may write in it.
std::string folder_of_launcher(const char* variable);

// Spares people a pause. When a rank returns a status other than 0, Open MPI's mpirun sleeps twice for
// odls_base_sigkill_timeout seconds and kills what is left of the job, even where nothing is left. A SIGCHLD
// ends such a sleep. To be called by each rank, when all have done their work and this process is about to end
// with such a status: mpirun may kill the others as soon as one has ended. Does nothing under other launchers.
void hurry_launcher();

}  // namespace plexaura
