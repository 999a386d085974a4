#include "app/report/console.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "training/loop/signals.h"

namespace plexaura {

namespace {

// Opens the file anew, because O_NONBLOCK belongs to the open file, which other programs share.
FileDescriptor without_blocking(int output) {
  struct stat status {};
  if (fstat(output, &status) != 0 || !(S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode))) return {};
  const std::string path = fmt::format("/proc/self/fd/{}", output);
  return FileDescriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

void reserve_standard_streams() {
  // Opens the closed streams: open() returns the lowest free number, which is that of the closed stream.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);
}

Console::Console(int output) : output_(output), unblocked_(without_blocking(output)) {}

void Console::print(std::string_view text) {
  constexpr std::chrono::milliseconds nap(20);
  constexpr int patience = 10;  // number of pauses after a signal
  const int file = unblocked_.is_there() ? unblocked_.number() : output_;
  for (int naps = 0; !text.empty() && !given_up_;) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      std::this_thread::sleep_for(nap);
      given_up_ = StopSignals::received() != 0 && ++naps == patience;
    } else if (errno != EINTR) {
      given_up_ = true;
      failure_ = errno == EPIPE || errno == EBADF ? 0 : errno;
    }
  }
}

}  // namespace plexaura
