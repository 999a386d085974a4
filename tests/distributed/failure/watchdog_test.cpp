#include "distributed/failure/watchdog.h"

#include <array>
#include <doctest/doctest.h>
#include <future>
#include <sys/wait.h>
#include <unistd.h>

namespace plexaura::testing::watchdog_test {

TEST_CASE("watchdog: a call that comes back in time is left alone") {
  std::promise<std::string> alarm;
  Watchdog watchdog("rank 0", [&](const std::string& sentence) { alarm.set_value(sentence); });
  for (int i = 0; i < 100; ++i) const Watchdog::Guard guard(watchdog, "a short call", 60);
  CHECK(alarm.get_future().wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
}

TEST_CASE("watchdog: the alarm says who waits for what") {
  std::promise<std::string> alarm;
  Watchdog watchdog("process 1", [&](const std::string& sentence) { alarm.set_value(sentence); });
  watchdog.rename("rank 2");
  const Watchdog::Guard patient(watchdog, "another call", 600);
  const Watchdog::Guard guard(watchdog, "MPI_Finalize", 0.05);
  const std::string sentence = alarm.get_future().get();
  CHECK(sentence.find("rank 2 has waited 0.") == 0);
  CHECK(sentence.find("in MPI_Finalize") != std::string::npos);
}

TEST_CASE("watchdog: what may help is tried once for each call, before the alarm") {
  std::promise<std::string> alarm;
  int rescues = 0;
  Watchdog watchdog("rank 0", [&](const std::string& sentence) { alarm.set_value(sentence); });
  watchdog.set_rescue([&] { ++rescues; });
  const Watchdog::Guard guard(watchdog, "MPIX_Comm_shrink", 0.05);
  CHECK(alarm.get_future().get().starts_with("rank 0 has waited 2."));
  CHECK(rescues == 1);
}

TEST_CASE("watchdog: by default the process ends with status 1 and one sentence") {
  std::array<int, 2> pipe_ends{};
  REQUIRE(pipe(pipe_ends.data()) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    Watchdog watchdog("rank 0");
    const Watchdog::Guard guard(watchdog, "MPI_Init", 0.01);
    pause();
  }
  close(pipe_ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  std::array<char, 500> text{};
  CHECK(read(pipe_ends[0], text.data(), text.size() - 1) > 0);
  close(pipe_ends[0]);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(std::string(text.data()).find("rank 0 has waited") == 0);
}

}  // namespace plexaura::testing::watchdog_test
