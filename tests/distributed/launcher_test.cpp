#include "distributed/launcher.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace plexaura::testing::launcher_test {

namespace {

std::atomic<int> ends_told = 0;
void count_end(int) { ++ends_told; }

// This process goes for mpirun as long as this lives, and counts what it is told of the end of its ranks.
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

}  // namespace

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
    constexpr int enough = 4;  // one comes from the rank itself
    for (int i = 0; i < 500 && ends_told < enough; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(ends_told >= enough);
  }
}

}  // namespace plexaura::testing::launcher_test
