#include "distributed/failure/silent_links.h"

#include <chrono>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace plexaura::testing::silent_links_test {
namespace {

class Socket {
 public:
  Socket() : file_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {}
  ~Socket() { close(file_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int file() const { return file_; }

 private:
  int file_;
};

sockaddr_in listen_on_loopback(const Socket& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(listener.file(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(listen(listener.file(), 0) == 0);
  REQUIRE(getsockname(listener.file(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return address;
}

void begin(const Socket& link, const sockaddr_in& to) {
  // the connection is being made
  CHECK(connect(link.file(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0);
}

bool is_open(const Socket& link) {
  pollfd events{link.file(), POLLIN, 0};
  return poll(&events, 1, 0) == 0;
}

}  // namespace

// The system does not answer connections for which a listener has no room.
TEST_CASE("silent links: what nobody answers is closed after a second, and nothing else") {
  const Socket listener;
  const Socket heard;
  const Socket silent;
  const sockaddr_in address = listen_on_loopback(listener);
  begin(heard, address);
  begin(silent, address);
  CHECK(!close_silent_links());
  CHECK(is_open(silent));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  CHECK(close_silent_links());
  CHECK(!is_open(silent));
  CHECK(is_open(heard));
  CHECK(!close_silent_links());
}

}  // namespace plexaura::testing::silent_links_test
