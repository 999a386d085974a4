#pragma once

#include <vector>

namespace plexaura {

// Shares the cores of this machine among the ranks that run on it: each computes with OMP_NUM_THREADS
// threads, or, where that is not set, with cores / ranks, at least one, and no more than the cores that it
// may use. A binding of the calling thread is its user's (taskset, srun) and stays; but where mpirun has
// bound its ranks, by default so that all threads of one share a core, and all threads of all ranks fit the
// cores, it is undone. `launcher`: the process of mpirun that has started this one, 0 for none. Its own binding is its user's, and
// is never left. To be called before the first kernel runs. Returns the number of threads. Throws
// UserError where OMP_NUM_THREADS is no number of threads that can be had.
int use_cores(int ranks_on_this_machine, int launcher = 0);

// How many cores this machine has; within a container or control group, how many it lets a process use, whatever this
// thread is bound to.
int cores_of_machine();

// The numbers of the cores that the calling thread is bound to, ascending; all of them where it is not bound.
std::vector<int> usable_cores();

// The threads that kernels compute with.
int threads_in_use();

// Whether OpenMP binds each of them to cores of its own choice (OMP_PROC_BIND, OMP_PLACES), so that usable_cores() tells
// of one thread alone.
bool openmp_binds_threads();

}  // namespace plexaura
