#include "training/loop/signals.h"

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

// Runs `work` in a child process, in which signals have their default actions. Returns the child's status. A
// child that reaches the end of `work` exits with its result.
template <class Work>
int child_status(Work&& work) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGXCPU})
      std::signal(number, SIG_DFL);
    _exit(work());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Signals, and the signal that each of them counts as: SIGINT or SIGTERM.
constexpr std::pair<int, int> meanings[] = {
    {SIGUSR1, SIGTERM}, {SIGUSR2, SIGINT}, {SIGHUP, SIGTERM}, {SIGXCPU, SIGTERM}};

// Returns the signal that StopSignals has recorded in a child that raises these signals; 0 if a signal has
// killed it.
int received_after(std::initializer_list<int> numbers) {
  const int status = child_status([&] {
    const StopSignals signals;
    for (const int number : numbers) std::raise(number);
    return StopSignals::received();
  });
  return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
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

TEST_CASE("other signals count as those") {
  for (const auto& [number, meant] : meanings) {
    CHECK(received_after({number}) == meant);
  }
}

TEST_CASE("before it, and behind it, these signals end the process as those do") {
  for (const auto& [number, meant] : meanings) {
    for (const bool is_over : {false, true}) {
      const int status = child_status([number = number, is_over] {
        StopSignals::end_process();
        if (is_over) const StopSignals signals;
        std::raise(number);
        return 2;
      });
      CHECK(WIFSIGNALED(status));
      CHECK(WTERMSIG(status) == meant);
    }
  }
}

TEST_CASE("a hangup that is ignored stays so") {
  const int status = child_status([] {
    std::signal(SIGHUP, SIG_IGN);
    StopSignals::end_process();
    std::raise(SIGHUP);
    const StopSignals signals;
    std::raise(SIGHUP);
    return StopSignals::received() == 0 ? 0 : 1;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
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

TEST_CASE("the same signal again ends the process at once") {
  for (const auto& [number, meant] :
       {std::pair{SIGINT, SIGINT}, {SIGTERM, SIGTERM}, {SIGUSR1, SIGTERM}, {SIGUSR2, SIGINT}}) {
    const int status = child_status([number = number, meant = meant] {
      const StopSignals signals;
      std::raise(number);
      if (StopSignals::received() != meant) return 1;
      std::raise(number);
      return 2;
    });
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == meant);
  }
}

TEST_CASE("another signal does not, and the first one counts") {
  CHECK(received_after({SIGUSR1, SIGTERM}) ==
        SIGTERM);  // a batch system sends a warning first, and then the order to end
  CHECK(received_after({SIGTERM, SIGINT}) == SIGTERM);
  CHECK(received_after({SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP}) == SIGINT);
}

TEST_CASE("signals that the system repeats do not end the process") {
  CHECK(received_after({SIGHUP, SIGHUP}) == SIGTERM);
  CHECK(received_after({SIGXCPU, SIGXCPU, SIGXCPU}) == SIGTERM);
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
