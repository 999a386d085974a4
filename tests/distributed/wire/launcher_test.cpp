#include "distributed/wire/launcher.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace plexaura::testing::launcher_test {

namespace {

std::atomic<int> ends_told = 0;
void count_end(int) { ++ends_told; }

// Makes this process act as mpirun for its lifetime, and counts reports about the end of its ranks.
class PretendedLauncher {
 public:
  PretendedLauncher() {
    prctl(PR_GET_NAME, name_);
    prctl(PR_SET_NAME, "mpirun");
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    ends_told = 0;
    struct sigaction counting {};
    counting.sa_handler = count_end;
    counting.sa_flags = SA_RESTART;
    sigaction(SIGCHLD, &counting, &before_);
  }
  ~PretendedLauncher() {
    sigaction(SIGCHLD, &before_, nullptr);
    unsetenv("OMPI_COMM_WORLD_RANK");
    prctl(PR_SET_NAME, name_);
  }
  PretendedLauncher(const PretendedLauncher&) = delete;
  PretendedLauncher& operator=(const PretendedLauncher&) = delete;

 private:
  char name_[16] = {};
  struct sigaction before_ {};
};

// Returns the rank that a process finds if it has these variables, and no other variables of a launcher.
std::optional<LaunchedRank> rank_with(const std::map<std::string, std::string>& variables) {
  constexpr const char* names[] = {"OMPI_COMM_WORLD_RANK",
                                   "OMPI_COMM_WORLD_SIZE",
                                   "PMIX_RANK",
                                   "PMIX_NAMESPACE",
                                   "PMI_RANK",
                                   "PMI_SIZE",
                                   "SLURM_PROCID",
                                   "SLURM_NTASKS",
                                   "SLURM_STEP_NUM_TASKS"};
  std::map<std::string, std::string> before;
  for (const char* name : names) {
    if (const char* value = std::getenv(name)) before[name] = value;
    unsetenv(name);
  }
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  const std::optional<LaunchedRank> told = launched_rank();
  for (const char* name : names) unsetenv(name);
  for (const auto& [name, value] : before) setenv(name.c_str(), value.c_str(), 1);
  return told;
}

void check_rank(const std::map<std::string, std::string>& variables, int rank, int ranks,
                const std::string& source, bool is_connected = true) {
  CAPTURE(variables.begin()->first);
  const std::optional<LaunchedRank> told = rank_with(variables);
  REQUIRE(told.has_value());
  CHECK(told->rank == rank);
  CHECK(told->ranks == ranks);
  CHECK(told->source == source);
  CHECK(told->is_connected == is_connected);
}

}  // namespace

TEST_CASE("launcher: each kind tells how many ranks it has started") {
  check_rank({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}}, 1, 3, "OMPI_COMM_WORLD_SIZE");
  check_rank({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, 1, 2, "PMI_SIZE");
  check_rank({{"PMIX_RANK", "1"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}, 1, 2,
             "SLURM_STEP_NUM_TASKS");
  // On that host, mpirun's daemon is a task of srun.
  check_rank({{"OMPI_COMM_WORLD_RANK", "0"},
              {"OMPI_COMM_WORLD_SIZE", "8"},
              {"SLURM_PROCID", "1"},
              {"SLURM_STEP_NUM_TASKS", "2"}},
             0, 8, "OMPI_COMM_WORLD_SIZE");
}

TEST_CASE("launcher: srun without a plugin connects nobody") {
  for (const std::string task : {"0", "1"})
    check_rank({{"SLURM_PROCID", task}, {"SLURM_STEP_NUM_TASKS", "2"}}, std::stoi(task), 2,
               "SLURM_STEP_NUM_TASKS", false);
  check_rank({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}, 1, 2, "SLURM_NTASKS", false);
}

TEST_CASE("launcher: a program that is started alone is no rank") {
  CHECK(!rank_with({}));
  CHECK(!rank_with({{"SLURM_NTASKS", "2"}}));                                 // in a shell of salloc
  CHECK(!rank_with({{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}}));          // in the script of a batch job
  CHECK(!rank_with({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}));  // started by srun -n 1
}

TEST_CASE("launcher: a folder counts only where it is this user's own") {
  char path[] = "/tmp/plexaura-launcher-XXXXXX";
  REQUIRE(mkdtemp(path) != nullptr);
  constexpr const char* variable = "PLEXAURA_FOLDER_OF_TEST";
  CHECK(folder_of_launcher(variable).empty());
  setenv(variable, path, 1);
  CHECK(folder_of_launcher(variable) == path);
  chmod(path, 0777);
  CHECK(folder_of_launcher(variable).empty());
  chmod(path, 0700);
  if (geteuid() == 0) {
    REQUIRE(chown(path, 65534, 65534) == 0);
    CHECK(folder_of_launcher(variable).empty());
  }
  rmdir(path);
  REQUIRE(symlink("/tmp", path) == 0);
  CHECK(folder_of_launcher(variable).empty());
  unlink(path);
  unsetenv(variable);
}

TEST_CASE("launcher: its process is known to its ranks, and to what these start") {
  const pid_t outside = launcher_process();
  const PretendedLauncher launcher;
  const pid_t expected = getpid();
  const pid_t rank = fork();
  if (rank == 0) {
    prctl(PR_SET_NAME, "rank");
    const pid_t inner = fork();
    if (inner == 0) _exit(launcher_process() == expected ? 0 : 1);
    int status = 0;
    waitpid(inner, &status, 0);
    _exit(launcher_process() == expected && status == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(rank, &status, 0);
  CHECK(status == 0);
  CHECK(outside != expected);
}

TEST_CASE("launcher: any rank that has ended hurries mpirun, though mpirun kills the rank's group at once") {
  const PretendedLauncher launcher;
  constexpr int runs = 20;
  for (int run = 0; run < runs; ++run) {
    ends_told = 0;
    const pid_t rank = fork();
    if (rank == 0) {
      setpgid(0, 0);
      hurry_launcher();
      _exit(2);
    }
    waitpid(rank, nullptr, 0);
    kill(-rank, SIGKILL);
    constexpr int enough = 4;  // one report comes from the rank itself
    for (int i = 0; i < 500 && ends_told < enough; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(ends_told >= enough);
  }
}

}  // namespace plexaura::testing::launcher_test
