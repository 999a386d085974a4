#include "training/signals.h"

#include <csignal>
#include <doctest/doctest.h>
#include <initializer_list>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace plexaura::testing::signals_test {

namespace {

// The status of a child that runs `work` with signals as every program has them at first, and, if it comes to
// the end of it, exits with what it returns.
template <class Work>
int child_status(Work&& work) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : {SIGINT, SIGTERM}) std::signal(number, SIG_DFL);
    _exit(work());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("the first signal is noted") {
  for (const int number : {SIGINT, SIGTERM}) {
    const StopSignals signals;
    CHECK(StopSignals::received() == 0);
    std::raise(number);
    CHECK(StopSignals::received() == number);
  }
  const StopSignals signals;
  CHECK(StopSignals::received() == 0);
}

TEST_CASE("signals that mpirun passes on count as those") {
  for (const auto& [number, meant] : {std::pair{SIGUSR1, SIGTERM}, std::pair{SIGUSR2, SIGINT}}) {
    const int status = child_status([number = number, meant = meant] {
      const StopSignals signals;
      std::raise(number);
      return StopSignals::received() == meant ? 0 : 1;
    });
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}

TEST_CASE("one within another neither forgets what was noted nor ends it") {
  const int status = child_status([] {
    const StopSignals signals;
    { const StopSignals inner; }
    std::raise(SIGINT);
    { const StopSignals inner; }
    return StopSignals::received() == SIGINT ? 0 : 1;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a second signal of either kind ends the process at once") {
  for (const int second : {SIGINT, SIGTERM}) {
    const int status = child_status([second] {
      const StopSignals signals;
      std::raise(SIGINT);
      if (StopSignals::received() != SIGINT) return 1;
      std::raise(second);
      return 2;
    });
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == second);
  }
}

TEST_CASE("threads may make and end them at the same time") {
  const int status = child_status([] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([] {
        for (int j = 0; j < 2000; ++j) const StopSignals signals;
      });
    for (std::thread& thread : threads) thread.join();
    std::raise(SIGTERM);
    return 2;
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
}

TEST_CASE("without it signals act as before") {
  const int status = child_status([] {
    { const StopSignals signals; }
    std::raise(SIGTERM);
    return 2;
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
}

}  // namespace plexaura::testing::signals_test
