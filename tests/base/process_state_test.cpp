#include "core/base/process_state.h"

#include <csignal>
#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace plexaura::testing::process_state_test {

TEST_CASE("process state: of a process that is stopped, whatever its name is") {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_NAME, "a) S (\nb");
    raise(SIGSTOP);
    _exit(0);
  }
  REQUIRE(waitpid(child, nullptr, WUNTRACED) == child);
  const ProcessState state = process_state(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(state.letter == 'T');
  CHECK(state.start >= process_state(getpid()).start);
  CHECK(process_state(getpid()).start > 0);
  CHECK(process_state(child).letter == '?');
}

}  // namespace plexaura::testing::process_state_test
