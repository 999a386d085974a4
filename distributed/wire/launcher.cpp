#include "distributed/wire/launcher.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <initializer_list>
#include <set>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace plexaura {
namespace {

std::string name_of(pid_t process) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", process)), name);
  return name;
}

bool is_mpirun(pid_t process) {
  static const std::set<std::string> names{"mpirun", "mpiexec", "orterun", "orted"};
  return names.contains(name_of(process));
}

bool is_mpirun_of_any_version(pid_t process) {
  static const std::set<std::string> names_in_five{"prterun", "prted"};
  return is_mpirun(process) || names_in_five.contains(name_of(process));
}

// Returns the parent process. Returns 0 if there is none, or if it cannot be read.
pid_t parent_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("PPid:")) return std::atoi(line.substr(5).c_str());
  return 0;
}

// Waits until the rank has ended, which starts the sleep of mpirun, and then sends signals. Each signal ends
// one second of that sleep.
void end_sleeps_of(pid_t launcher, pid_t rank) {
  constexpr std::chrono::milliseconds pause_between_tries{20};
  constexpr int most_tries = 200;
  for (int i = 0; i < most_tries && getppid() == rank; ++i) std::this_thread::sleep_for(pause_between_tries);
  for (int i = 0; i < most_tries && kill(launcher, SIGCHLD) == 0; ++i)
    std::this_thread::sleep_for(pause_between_tries);
}

// Returns the first of these variables that is set, or an empty name.
std::string first_set(std::initializer_list<const char*> variables) {
  for (const char* variable : variables)
    if (std::getenv(variable) != nullptr) return variable;
  return {};
}

std::string text_of(const std::string& variable) {
  const char* text = std::getenv(variable.c_str());
  return text == nullptr ? "" : text;
}

int number_of(const std::string& variable) { return std::atoi(text_of(variable).c_str()); }

// Returns the rank's number and the number of ranks if the process is a task of srun. A task has
// SLURM_STEP_NUM_TASKS, or SLURM_NTASKS with SLURM_PROCID above 0. The second variable alone does not
// suffice: Slurm also sets SLURM_PROCID to 0 for the script of a batch job, and SLURM_NTASKS for any process
// of a job. The daemons of mpirun are tasks too, and pass on their variables.
std::optional<LaunchedRank> task_of_srun() {
  const int task = number_of("SLURM_PROCID");
  const std::string source = first_set({"SLURM_STEP_NUM_TASKS", task > 0 ? "SLURM_NTASKS" : ""});
  if (text_of("SLURM_PROCID").empty() || number_of(source) < 2) return std::nullopt;
  return LaunchedRank{.rank = task, .ranks = number_of(source), .source = source, .is_connected = false};
}

}  // namespace

std::optional<LaunchedRank> launched_rank() {
  const std::string rank = first_set({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"});
  const std::string ranks = first_set({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"});
  if (rank.empty() && (ranks.empty() || ranks == "SLURM_STEP_NUM_TASKS")) return task_of_srun();
  return LaunchedRank{number_of(rank), number_of(ranks), text_of("PMIX_NAMESPACE"), ranks};
}

int launcher_process() {
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) return 0;
  pid_t process = getppid();
  while (process != 0 && !is_mpirun_of_any_version(process)) process = parent_of(process);
  return process;
}

std::string folder_of_launcher(const char* variable) {
  const std::string folder = text_of(variable);
  struct stat status {};
  const bool is_ours = lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
                       status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  return is_ours ? folder : "";
}

void hurry_launcher() {
  const pid_t launcher = getppid();
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr || !is_mpirun(launcher)) return;
  const pid_t rank = getpid();
  const pid_t helper = fork();
  // Moves the helper to a process group of its own, because mpirun ends the group of the rank as soon as this
  // process has ended.
  setpgid(helper, helper);
  if (helper != 0) return;
  close_range(0, ~0U, 0);  // closes all files, since mpirun also waits until its pipe to the rank is closed
  end_sleeps_of(launcher, rank);
  _exit(0);
}

}  // namespace plexaura
