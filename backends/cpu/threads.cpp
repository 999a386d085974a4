#include "backends/cpu/threads.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <sched.h>
#include <string_view>

#include "core/base/error.h"

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

// Returns the cores to which mpirun itself is bound. Returns all cores if there is no mpirun, or if it has
// ended.
cpu_set_t cores_of(int launcher) {
  cpu_set_t cores;
  const bool is_known = launcher != 0 && sched_getaffinity(launcher, sizeof cores, &cores) == 0;
  return is_known ? cores : every_core();
}

bool contains(const cpu_set_t& all, const cpu_set_t& some) {
  cpu_set_t both;
  CPU_AND(&both, &all, &some);
  return CPU_EQUAL(&both, &some) != 0;
}

// True if mpirun has bound this rank to cores. Open MPI 4 says so in an environment variable. Open MPI 5 does
// not, and binds ranks by default.
bool bound_by_mpirun() {
  if (std::getenv("OMPI_MCA_orte_launch") != nullptr)
    return std::getenv("OMPI_MCA_orte_bound_at_launch") != nullptr;
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
}

// Returns the largest number of threads that a user may set: with many more threads than cores a step takes
// minutes, and with tens of thousands OpenMP ends the process.
int most_threads(int cores) { return std::max(16, 4 * cores); }

// Returns the value of OMP_NUM_THREADS. Returns nothing if it is not set. Throws UserError if it is not a
// valid number.
std::optional<int> wanted_threads(int cores) {
  const char* variable = std::getenv("OMP_NUM_THREADS");
  if (variable == nullptr) return std::nullopt;
  const std::string_view text = variable;
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 1 ||
      threads > most_threads(cores))
    throw UserError(
        fmt::format("OMP_NUM_THREADS is '{}'; it must be a whole number from 1 to {} on a machine of {} "
                    "cores, or unset",
                    text, most_threads(cores), cores));
  return threads;
}

int with_threads(int threads) {
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
  return threads;
}

}  // namespace

int use_cores(int ranks_on_this_machine, int launcher) {
  const cpu_set_t launchers = cores_of(launcher);
  const int machine = cores_of_machine();
  const int cores = std::clamp(CPU_COUNT(&launchers), 1, machine);
  const std::optional<int> wanted = wanted_threads(machine);
  const int threads = wanted.value_or(std::max(1, cores / ranks_on_this_machine));
  const bool have_room = threads <= cores / ranks_on_this_machine;
  if (bound_by_mpirun() && (have_room || !contains(launchers, affinity()))) {
    bind_to(launchers);
    return with_threads(threads);
  }
  const cpu_set_t usable = affinity();
  return with_threads(wanted ? threads : std::clamp(CPU_COUNT(&usable), 1, threads));
}

// Returns the number of cores. Binds this thread to all of them for a moment, and restores its binding before
// it returns.
int cores_of_machine() {
  const cpu_set_t inherited = affinity();
  bind_to(every_core());
  const cpu_set_t machine = affinity();
  bind_to(inherited);
  return std::max(1, CPU_COUNT(&machine));
}

std::vector<int> usable_cores() {
  const cpu_set_t cores = affinity();
  std::vector<int> usable;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores)) usable.push_back(core);
  return usable;
}

bool openmp_binds_threads() {
#ifdef _OPENMP
  return omp_get_proc_bind() != omp_proc_bind_false;
#else
  return false;
#endif
}

int threads_in_use() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

}  // namespace plexaura
