#include "training/files/command_output.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

namespace {

// The groups of the commands that are running; 0: a free place.
std::array<std::atomic<pid_t>, 64> groups{};
static_assert(std::atomic<pid_t>::is_always_lock_free, "a signal handler may read only lock-free atomics");

// Replaces one `from` by `to`. Returns false if there is none.
bool replace_group(pid_t from, pid_t to) {
  return std::ranges::any_of(groups, [&](std::atomic<pid_t>& group) {
    pid_t expected = from;
    return group.compare_exchange_strong(expected, to);
  });
}

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

// Waits for the end of the process, and writes its status. Returns what waitpid() returns.
pid_t wait_for(pid_t process, int& status) {
  pid_t found = -1;
  do found = waitpid(process, &status, 0);
  while (found < 0 && errno == EINTR);
  return found;
}

// Ends the process group of a command. Its first process counts as a member until its status is read, so its status is
// read before the function looks for other members.
void end_group(pid_t leader) {
  constexpr int most_tries = 100;
  constexpr std::chrono::milliseconds pause{10};
  bool is_read = false;
  kill(-leader, SIGTERM);
  for (int i = 0; i < most_tries; ++i) {
    is_read = is_read || waitpid(leader, nullptr, WNOHANG) != 0;
    if (is_read && kill(-leader, 0) != 0) return;
    std::this_thread::sleep_for(pause);
  }
  kill(-leader, SIGKILL);
  int status = 0;
  if (!is_read) wait_for(leader, status);
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
  if (replace_group(0, process_)) return;
  end_group(process_);
  throw DeviceError(fmt::format("the command `{}` cannot run, because {} others do; end one of them first",
                                command_, groups.size()));
}

CommandOutput::~CommandOutput() {
  if (process_ < 0) return;
  output_.close();
  end_group(process_);
  replace_group(process_, 0);
}

void CommandOutput::end_all() noexcept {
  for (const std::atomic<pid_t>& group : groups)
    if (const pid_t leader = group.load(); leader > 0) kill(-leader, SIGTERM);
}

bool CommandOutput::wait(const std::function<bool()>& is_to_end) const {
  if (process_ < 0) return true;
  constexpr int milliseconds = 100;
  pollfd output{output_.number(), POLLIN, 0};
  for (int wait = 0;; wait = milliseconds) {
    if (poll(&output, 1, wait) > 0) return true;
    if (is_to_end()) return false;
  }
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
  int status = 0;
  const pid_t process = std::exchange(process_, -1);
  const bool is_known = wait_for(process, status) == process;
  const int error = errno;
  replace_group(process, 0);
  if (!is_known)
    throw DeviceError(fmt::format(
        "whether the command `{}` has printed all rows cannot be known, because its status cannot be "
        "read: {}; start the program with the default action for SIGCHLD",
        command_, std::strerror(error)));
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
