#pragma once

#include <optional>
#include <string>

namespace plexaura {

// The values that a launcher passes to a process which it starts as a rank, before MPI begins.
struct LaunchedRank {
  int rank = 0;
  int ranks = 0;             // number of ranks; 0: unknown
  std::string job = {};      // name of the job, equal for all ranks; empty: unknown
  std::string source = {};   // name of the environment variable with the number of ranks
  bool is_connected = true;  // true if the launcher provides a way for MPI to find the other ranks
};

// Returns the values if a launcher started this process as a rank. Returns nothing if the process was not
// started as a rank by Open MPI's mpirun, another mpirun, or srun. A shell of salloc and the script of a
// batch job are no ranks, however many tasks the job has. srun without its PMIx or PMI plugin does not
// connect its tasks.
std::optional<LaunchedRank> launched_rank();

// Returns the id of the process that has started this one as a rank: Open MPI's mpirun, or on other machines
// its daemon. Returns 0 if there is none.
int launcher_process();

// Returns the folder on this machine that tools/run names in this variable for files of the run. Returns an
// empty text if there is none, as on other machines, and if the folder belongs to another user or other users
// may write in it.
std::string folder_of_launcher(const char* variable);

// Shortens the pause at the end of a job. If a rank returns a status other than 0, mpirun of Open MPI 4 sleeps
// twice for odls_base_sigkill_timeout seconds and kills the rest of the job, even if no process is left. A
// SIGCHLD ends one second of such a sleep. Each rank calls this after all ranks have finished their work,
// when its process is about to end with such a status, because mpirun may kill the other ranks as soon as one
// has ended. Does nothing under other launchers.
void hurry_launcher();

}  // namespace plexaura
