#include "distributed/failure/silent_links.h"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace plexaura {
namespace {

// The number of times that Linux has sent data again when a link counts as silent. It does so after 0.2 s,
// 0.6 s and 1.4 s, and repeats a request to connect after 1 s.
constexpr int times_sent_again = 3;
constexpr int times_begun_again = 1;

bool is_silent(int file) {
  tcp_info info{};
  socklen_t size = sizeof info;
  // The file is no TCP connection.
  if (getsockopt(file, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_retransmits >= (info.tcpi_state == TCP_SYN_SENT ? times_begun_again : times_sent_again);
}

// Closes the connection if it is silent. Works on a copy of the descriptor, because another thread may close
// the original and open another file under its number.
bool close_if_silent(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISSOCK(status.st_mode))
    // Makes no copy of a file's descriptor, because closing the copy would release the file's locks.
    return false;
  const int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return false;
  const bool silent = is_silent(copy);
  if (silent) shutdown(copy, SHUT_RDWR);
  close(copy);
  return silent;
}

}  // namespace

bool close_silent_links() {
  std::vector<int> files;
  std::error_code error;
  std::filesystem::directory_iterator all("/proc/self/fd", error);
  for (; !error && all != std::filesystem::directory_iterator(); all.increment(error))
    files.push_back(std::atoi(all->path().filename().c_str()));
  return std::ranges::count_if(files, close_if_silent) > 0;
}

}  // namespace plexaura
