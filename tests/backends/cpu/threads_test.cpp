#include "backends/cpu/threads.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <map>
#include <sched.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/support/error_text.h"

namespace plexaura::testing::threads_test {

namespace {

using Variables = std::map<std::string, std::string>;

constexpr const char* names[] = {"OMP_NUM_THREADS", "OMPI_MCA_orte_launch", "OMPI_MCA_orte_bound_at_launch",
                                 "OMPI_COMM_WORLD_SIZE"};

// Sets these environment variables, and removes all others that matter, for the lifetime of the object.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const char* name : names) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const char* name : names) ::unsetenv(name);
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  Variables before_;
};

cpu_set_t binding() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}

int usable_cores() {
  const cpu_set_t cores = binding();
  return CPU_COUNT(&cores);
}

// Binds the thread to the first core of the machine, or to all cores.
void bind(bool to_one) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
  if (!to_one) return;
  cores = binding();
  int first = 0;
  while (!CPU_ISSET(first, &cores)) ++first;
  CPU_ZERO(&cores);
  CPU_SET(first, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

struct Use {
  int threads = 0;
  int cores = 0;  // number of cores that the process may use
  bool operator==(const Use&) const = default;
};

// Runs in a separate thread, because bindings and OpenMP's number of threads belong to a thread.
Use use(int ranks, bool bound, const Variables& variables, int launcher = 0) {
  const Environment environment(variables);
  Use result;
  std::thread([&] {
    bind(bound);
    result.threads = use_cores(ranks, launcher);
    result.cores = usable_cores();
  }).join();
  return result;
}

// A running process that its user has bound to the first core of the machine.
class BoundLauncher {
 public:
  BoundLauncher() : process_(fork()) {
    if (process_ == 0) {
      bind(true);
      kill(getpid(), SIGSTOP);
      _exit(0);
    }
    waitpid(process_, nullptr, WUNTRACED);
  }
  ~BoundLauncher() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  BoundLauncher(const BoundLauncher&) = delete;
  BoundLauncher& operator=(const BoundLauncher&) = delete;
  int process() const { return process_; }

 private:
  pid_t process_;
};

// Returns the number of cores that a process may use that is not bound to some.
int all_cores() { return use(1, false, {}).threads; }

const Variables bound_by_four{
    {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_MCA_orte_launch", "1"}, {"OMPI_MCA_orte_bound_at_launch", "1"}};
const Variables unbound_by_four{{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_MCA_orte_launch", "1"}};
const Variables by_five{{"OMPI_COMM_WORLD_SIZE", "2"}};

Variables with_threads(Variables variables, int threads) {
  variables["OMP_NUM_THREADS"] = std::to_string(threads);
  return variables;
}

}  // namespace

TEST_CASE("ranks share the cores of the machine, and each has a thread at least") {
  const int cores = all_cores();
  CHECK(use(cores, false, {}) == Use{1, cores});
  CHECK(use(cores + 1, false, {}) == Use{1, cores});
  CHECK(use(2, false, unbound_by_four) == Use{std::max(1, cores / 2), cores});
  CHECK(use(1, false, with_threads({}, cores + 3)) == Use{cores + 3, cores});
}

TEST_CASE("a number of threads that cannot be had is refused") {
  const int cores = all_cores();
  const int most = std::max(16, 4 * cores);
  CHECK(use(1, false, with_threads({}, most)) == Use{most, cores});
  for (const std::string& text : std::vector<std::string>{
           "", "abc", "0", "-1", "2.5", "4x", std::to_string(most + 1), "100000", "99999999999999999999"}) {
    const Environment environment({{"OMP_NUM_THREADS", text}});
    CHECK(user_error([] { use_cores(1); }) ==
          "OMP_NUM_THREADS is '" + text + "'; it must be a whole number from 1 to " + std::to_string(most) +
              " on a machine of " + std::to_string(cores) + " cores, or unset");
  }
}

TEST_CASE("a user's own binding stays, and says how many threads there are") {
  CHECK(use(1, true, {}) == Use{1, 1});
  CHECK(use(2, true, {}) == Use{1, 1});
  CHECK(use(1, true, with_threads({}, 2)) == Use{2, 1});
  CHECK(use(1, true, unbound_by_four) == Use{1, 1});
}

TEST_CASE("mpirun's binding is undone where all threads of all ranks fit the cores, and only there") {
  const int cores = all_cores();
  for (const Variables& mpirun : {bound_by_four, by_five}) {
    CHECK(use(1, true, mpirun) == Use{cores, cores});
    CHECK(use(cores, true, mpirun) == Use{1, cores});
    CHECK(use(1, true, with_threads(mpirun, cores)) == Use{cores, cores});
    CHECK(use(1, true, with_threads(mpirun, cores + 1)) == Use{cores + 1, 1});
    CHECK(use(cores + 1, true, mpirun) == Use{1, 1});
  }
}

TEST_CASE("the binding of mpirun itself is its user's, and stays") {
  const BoundLauncher launcher;
  for (const Variables& mpirun : {bound_by_four, by_five}) {
    CHECK(use(1, true, mpirun, launcher.process()) == Use{1, 1});
    CHECK(use(1, false, mpirun, launcher.process()) ==
          Use{1, 1});  // mpirun has bound this rank to other cores than its launcher
    CHECK(use(2, false, mpirun, launcher.process()) == Use{1, 1});
    CHECK(use(1, false, with_threads(mpirun, 2), launcher.process()) == Use{2, 1});
  }
}

}  // namespace plexaura::testing::threads_test
