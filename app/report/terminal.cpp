#include "app/report/terminal.h"

#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "training/files/file.h"

namespace plexaura {

namespace {

std::size_t columns_of(int file) {
  winsize size{};
  return isatty(file) != 0 && ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

std::size_t terminal_columns() {
  if (const std::size_t columns = columns_of(STDOUT_FILENO); columns > 0) return columns;
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) return 0;
  const std::string output_of_mpirun = fmt::format("/proc/{}/fd/1", getppid());
  return columns_of(
      FileDescriptor(::open(output_of_mpirun.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC)).number());
}

std::string progress_bar(std::int64_t done, std::int64_t all) {
  constexpr std::int64_t width = 20;
  const auto full = static_cast<std::size_t>(width * done / all);
  std::string text(full, '=');
  if (full < width) text += '>';
  text.resize(width, ' ');
  return '[' + text + ']';
}

}  // namespace plexaura
