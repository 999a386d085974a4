#pragma once

#include <csignal>
#include <doctest/doctest.h>
#include <exception>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace plexaura::testing {

// What ends the work in a process of its own: the words of an error, or a signal; nothing where it ends well. The process must
// not use threads of OpenMP that its parent has started.
template <class Work>
std::string what_ends(const Work& work) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    std::string words;
    try {
      work();
    } catch (const std::exception& error) {
      words = error.what();
    }
    [[maybe_unused]] const auto written = write(ends[1], words.data(), words.size());
    _exit(0);
  }
  close(ends[1]);
  std::string words;
  char piece[256];
  for (ssize_t count = 0; (count = read(ends[0], piece, sizeof piece)) > 0;)
    words.append(piece, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : words;
}

}  // namespace plexaura::testing
