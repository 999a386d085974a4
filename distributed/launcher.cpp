#include "distributed/launcher.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <initializer_list>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>

namespace plexaura {
namespace {

bool is_mpirun(pid_t process) {
  static const std::set<std::string> names{"mpirun", "mpiexec", "orterun", "orted"};
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", process)), name);
  return names.contains(name);
}

// Every signal takes a second off what mpirun has left to sleep. It starts when it has seen the rank end.
void end_sleeps_of(pid_t launcher, pid_t rank) {
  constexpr std::chrono::milliseconds pause_between_tries{20};
  constexpr int most_tries = 200;
  for (int i = 0; i < most_tries && getppid() == rank; ++i) std::this_thread::sleep_for(pause_between_tries);
  for (int i = 0; i < most_tries && kill(launcher, SIGCHLD) == 0; ++i)
    std::this_thread::sleep_for(pause_between_tries);
}

std::string text_of_variables(std::initializer_list<const char*> variables) {
  for (const char* variable : variables)
    if (const char* text = std::getenv(variable)) return text;
  return {};
}

}  // namespace

std::optional<LaunchedRank> launched_rank() {
  const std::string rank = text_of_variables({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"});
  const std::string ranks = text_of_variables({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  if (rank.empty() && ranks.empty()) return std::nullopt;
  return LaunchedRank{std::atoi(rank.c_str()), std::atoi(ranks.c_str()),
                      text_of_variables({"PMIX_NAMESPACE"})};
}

void hurry_launcher() {
  const pid_t launcher = getppid();
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr || !is_mpirun(launcher)) return;
  const pid_t rank = getpid();
  const pid_t helper = fork();
  // mpirun ends the whole group of the rank as soon as this process has ended.
  setpgid(helper, helper);
  if (helper != 0) return;
  close_range(0, ~0U, 0);  // mpirun also waits for the end of what it prints
  end_sleeps_of(launcher, rank);
  _exit(0);
}

}  // namespace plexaura
