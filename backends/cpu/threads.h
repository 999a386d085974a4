#pragma once

namespace plexaura {

// Shares the cores of this machine among the ranks that run on it: each computes with OMP_NUM_THREADS
// threads, or, where that is not set, with cores / ranks, at least one. Where all of them together fit the
// cores, an inherited binding that would put several threads on one core (mpirun's default) is undone. To be
// called before the first kernel runs. Returns the number of threads.
int use_cores(int ranks_on_this_machine);

// The threads that kernels compute with.
int threads_in_use();

}  // namespace plexaura
