#pragma once

#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <exception>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cpu/threads.h"

namespace plexaura::testing {

// SIGALRM ends a child that hangs after this time.
constexpr unsigned most_seconds_of_a_child = 60;

// Runs `work` in the child, and exits. Writes the text of an error to `to`.
template <class Work>
[[noreturn]] void run_in_child(const Work& work, int to) {
  std::signal(SIGSEGV, SIG_DFL);
  std::signal(SIGALRM, SIG_DFL);
  alarm(most_seconds_of_a_child);
  setenv("OMP_NUM_THREADS", "1", 1);  // the OpenMP threads of the parent do not exist in the child
  use_cores(1);
  std::string words;
  try {
    work();
  } catch (const std::exception& error) {
    words = error.what();
  }
  const bool are_written = write(to, words.data(), words.size()) == static_cast<ssize_t>(words.size());
  _exit(are_written ? 0 : 1);
}

// Runs the work in a separate process. Returns its error, signal or exit status, or "" if it ends with status
// 0.
template <class Work>
std::string what_ends(const Work& work) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) run_in_child(work, ends[1]);
  close(ends[1]);
  std::string words;
  char piece[256];
  for (ssize_t count = 0; (count = read(ends[0], piece, sizeof piece)) > 0;)
    words.append(piece, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return "exit status " + std::to_string(WEXITSTATUS(status));
  return words;
}

}  // namespace plexaura::testing
