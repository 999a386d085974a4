#include "backends/cpu/threads.h"

#include <algorithm>
#include <cstdlib>
#include <sched.h>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace plexaura {

namespace {

cpu_set_t affinity() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}

void bind_to(const cpu_set_t& cores) { sched_setaffinity(0, sizeof cores, &cores); }

cpu_set_t every_core() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
  return all;
}

// Open MPI 4 tells whether it has bound its ranks. Open MPI 5 does not, and does unless it was told
// otherwise.
bool bound_by_mpirun() {
  if (std::getenv("OMPI_MCA_orte_launch") != nullptr)
    return std::getenv("OMPI_MCA_orte_bound_at_launch") != nullptr;
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
}

int with_threads(int threads) {
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
  return threads;
}

}  // namespace

int use_cores(int ranks_on_this_machine) {
  const cpu_set_t inherited = affinity();
  bind_to(every_core());  // a container's own limit stays in force
  const cpu_set_t machine = affinity();
  const int cores = std::max(1, CPU_COUNT(&machine));
  const char* wanted = std::getenv("OMP_NUM_THREADS");
  const int threads = std::max(1, wanted != nullptr ? std::atoi(wanted) : cores / ranks_on_this_machine);
  if (bound_by_mpirun() && threads <= cores / ranks_on_this_machine) return with_threads(threads);
  bind_to(inherited);
  return with_threads(wanted != nullptr ? threads : std::clamp(CPU_COUNT(&inherited), 1, threads));
}

int threads_in_use() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

}  // namespace plexaura
