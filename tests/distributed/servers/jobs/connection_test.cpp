#include "distributed/servers/jobs/connection.h"

#include <array>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "tests/support/error_text.h"

namespace plexaura::testing::connection_test {

namespace {

bool has_ipv6() {
  ServerPlace place;
  return user_error([&] { listen_at({.address = "::1"}, place); }).empty();
}

// Makes the address 127.0.0.2 ignore new connections to a port: the queue of its listener is full.
class SilentHost {
 public:
  explicit SilentHost(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    const auto* const bound = reinterpret_cast<const sockaddr*>(&address);
    sockets_.emplace_back(socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(bind(sockets_[0].number(), bound, sizeof address) == 0);
    REQUIRE(listen(sockets_[0].number(), 0) == 0);
    for (int i = 0; i < 4; ++i) {
      sockets_.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      connect(sockets_.back().number(), bound, sizeof address);
    }
  }

 private:
  std::vector<FileDescriptor> sockets_;
};

}  // namespace

TEST_CASE("connection: a place is reached as long as somebody listens there") {
  ServerPlace place;
  FileDescriptor listener = listen_at({}, place);
  CHECK(place.host == "127.0.0.1");
  CHECK(connect_to(place, 10).is_there());
  listener = FileDescriptor();
  CHECK_FALSE(connect_to(place, 10).is_there());
  CHECK_FALSE(connect_to({"no such host.invalid", place.port, ""}, 10).is_there());
}

TEST_CASE("connection: without an address only this host is listened to") {
  ServerPlace place;
  const FileDescriptor listener = listen_at({}, place);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  REQUIRE(getsockname(listener.number(), reinterpret_cast<sockaddr*>(&bound), &size) == 0);
  CHECK(bound.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
}

TEST_CASE("connection: an address for all is told by the name of this host") {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  for (const char* address : {"0.0.0.0", "::"}) {
    if (!has_ipv6() && address == std::string("::")) continue;
    CAPTURE(address);
    ServerPlace place;
    const FileDescriptor listener = listen_at({.address = address}, place);
    CHECK(place.host == name.data());
    CHECK(connect_to(place, 10).is_there());
    CHECK(connect_to({"127.0.0.1", place.port, ""}, 10).is_there());
  }
}

TEST_CASE("connection: by IPv6, and by whichever address of a host is listened at") {
  if (!has_ipv6()) {
    MESSAGE("skipped: this host has no IPv6");
    return;
  }
  ServerPlace place;
  const FileDescriptor listener = listen_at({.address = "::1"}, place);
  CHECK(place.host == "::1");
  CHECK(connect_to(place, 10).is_there());
  CHECK_FALSE(connect_to({"127.0.0.1", place.port, ""}, 10).is_there());
}

TEST_CASE("connection: a host that never answers leaves time for the next one") {
  ServerPlace place;
  const FileDescriptor listener = listen_at({}, place);
  const SilentHost silent(place.port);
  CHECK_FALSE(connect_to_any({"127.0.0.2"}, place.port, 0.2).is_there());
  CHECK(connect_to_any({"127.0.0.2", "127.0.0.1"}, place.port, 1).is_there());
}

TEST_CASE("connection: a port of one's own, which is free again at once") {
  ServerPlace place;
  FileDescriptor listener = listen_at({}, place);
  const int port = place.port;
  const FileDescriptor connection = connect_to(place, 10);
  CHECK(
      user_error([&] { listen_at({.port = port}, place); }) ==
      "--serve cannot listen at 127.0.0.1, port " + std::to_string(port) +
          ": Address already in use; give --address an address of this host, and --port a port that is free");
  FileDescriptor inside(accept(listener.number(), nullptr, nullptr));
  listener = FileDescriptor();
  inside = FileDescriptor();  // the server closes first, so that the system keeps the port for a while
  listener = listen_at({.port = port}, place);
  CHECK(place.port == port);
}

TEST_CASE("connection: an address of another host is refused") {
  ServerPlace place;
  CHECK(user_error([&] { listen_at({.address = "192.0.2.1"}, place); }) ==
        "--serve cannot listen at 192.0.2.1: Cannot assign requested address; give --address an address of "
        "this "
        "host, and --port a port that is free");
  CHECK(user_error([&] {
          listen_at({.address = "no such host.invalid"}, place);
        }).starts_with("--serve cannot listen at no such host.invalid: "));
}

}  // namespace plexaura::testing::connection_test
