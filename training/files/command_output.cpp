#include "training/files/command_output.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

namespace {

// Starts the command with `output` as its standard output. Returns an error of the system, or 0.
int start(const std::string& command, int output, pid_t& process) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::array<char*, 4> words{const_cast<char*>("sh"), const_cast<char*>("-c"),
                             const_cast<char*>(command.c_str()), nullptr};
  const int error = posix_spawn(&process, "/bin/sh", &files, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

// Waits for the end of the process. Returns its status as waitpid() does.
int status_of(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

CommandOutput::CommandOutput(std::string command) : command_(std::move(command)) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw DeviceError(fmt::format("no pipe for the output of the command `{}` can be made: {}", command_,
                                  std::strerror(errno)));
  output_ = FileDescriptor(ends[0]);
  const FileDescriptor input(ends[1]);
  if (const int error = start(command_, input.number(), process_); error != 0) {
    process_ = -1;
    throw UserError(fmt::format("the command `{}` cannot be started: {}", command_, std::strerror(error)));
  }
}

CommandOutput::~CommandOutput() {
  if (process_ < 0) return;
  constexpr int most_tries = 100;
  constexpr std::chrono::milliseconds pause{10};
  kill(-process_, SIGTERM);
  for (int i = 0; i < most_tries; ++i) {
    if (waitpid(process_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(pause);
  }
  kill(-process_, SIGKILL);
  status_of(process_);
}

std::size_t CommandOutput::read(std::span<char> into) {
  if (process_ < 0) return 0;
  ssize_t count = -1;
  do count = ::read(output_.number(), into.data(), into.size());
  while (count < 0 && errno == EINTR);
  if (count < 0)
    throw DeviceError(
        fmt::format("the output of the command `{}` cannot be read: {}", command_, std::strerror(errno)));
  if (count == 0) check_status();
  bytes_ += count;
  return static_cast<std::size_t>(count);
}

void CommandOutput::check_status() {
  const int status = status_of(std::exchange(process_, -1));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  throw UserError(fmt::format(
      "the command `{}` was to print rows, and {} after {} bytes, so that rows may be missing; correct the "
      "command",
      command_,
      WIFEXITED(status) ? fmt::format("has ended with status {}", WEXITSTATUS(status))
                        : fmt::format("was ended by signal {}", WTERMSIG(status)),
      bytes_));
}

}  // namespace plexaura
