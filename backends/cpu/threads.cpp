#include "backends/cpu/threads.h"

#include <algorithm>
#include <cstdlib>
#include <sched.h>
#include <thread>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace plexaura {

namespace {

// Cores of the machine, whatever this process is bound to.
int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void unbind() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
  sched_setaffinity(0, sizeof all, &all);  // a container's own limit stays in force
}

}  // namespace

int use_cores(int ranks_on_this_machine) {
  unbind();
  const char* wanted = std::getenv("OMP_NUM_THREADS");
  const int threads =
      wanted != nullptr ? std::max(1, std::atoi(wanted)) : std::max(1, cores() / ranks_on_this_machine);
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
  return threads;
}

int threads_in_use() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

}  // namespace plexaura
