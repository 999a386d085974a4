#pragma once

#include <vector>

namespace plexaura {

// Divides the cores of this machine among its ranks: each computes with OMP_NUM_THREADS threads or, if that is not set,
// with cores / ranks, at least one. Without OMP_NUM_THREADS, a rank takes no more threads than the cores that it may
// use. A binding that the user has made (taskset, srun) stays. A binding by mpirun, which by default puts all threads
// of a rank on one core, is undone if the threads of all ranks fit the cores, or if it names a core that mpirun itself
// may not use. `launcher` is the process id of the mpirun that started this process, or 0; the cores that mpirun
// itself is bound to are never left. Must be called before the first kernel runs. Returns the number of
// threads. Throws UserError if OMP_NUM_THREADS is not a valid number of threads.
int use_cores(int ranks_on_this_machine, int launcher = 0);

// Returns the number of cores of this machine, or of the container or control group that the process runs in,
// whatever this thread is bound to.
int cores_of_machine();

// Returns the numbers of the cores that the calling thread may use, ascending. If the thread is not bound,
// these are all cores.
std::vector<int> usable_cores();

// Returns the number of threads with which kernels compute.
int threads_in_use();

// True if OpenMP binds each thread to cores that it chooses itself (OMP_PROC_BIND, OMP_PLACES). Then
// usable_cores() is valid for the calling thread only.
bool openmp_binds_threads();

}  // namespace plexaura
