#include "distributed/servers/jobs/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace plexaura {

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Returns all addresses of a host. Sets `problem` to the reason if there are none.
Addresses addresses_of(const std::string& host, int port, int flags, std::string& problem) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0)
    problem = failed == EAI_SYSTEM ? std::generic_category().message(errno) : gai_strerror(failed);
  return {failed == 0 ? found : nullptr, freeaddrinfo};
}

std::string own_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

FileDescriptor socket_for(const addrinfo& address) {
  return FileDescriptor(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Makes the socket listen. Its options free the port of a killed server at once, and let "::" listen for
// IPv4, too.
bool listens(const FileDescriptor& listener, const addrinfo& address) {
  const int on = 1;
  const int off = 0;
  setsockopt(listener.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6)
    setsockopt(listener.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  return bind(listener.number(), address.ai_addr, address.ai_addrlen) == 0 &&
         listen(listener.number(), SOMAXCONN) == 0;
}

// Returns the port to which the socket is bound.
int port_of(const FileDescriptor& listener) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(listener.number(), reinterpret_cast<sockaddr*>(&bound), &size);
  const bool is_ipv6 = bound.ss_family == AF_INET6;
  return ntohs(is_ipv6 ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                       : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

bool stands_for_all(const addrinfo& address) {
  if (address.ai_family == AF_INET6) {
    const auto* const ipv6 = reinterpret_cast<const sockaddr_in6*>(address.ai_addr);
    return IN6_IS_ADDR_UNSPECIFIED(&ipv6->sin6_addr);
  }
  return reinterpret_cast<const sockaddr_in*>(address.ai_addr)->sin_addr.s_addr == htonl(INADDR_ANY);
}

bool comes_about(const FileDescriptor& connection, double seconds) {
  pollfd wait{connection.number(), POLLOUT, 0};
  if (poll(&wait, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(connection.number(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

FileDescriptor connect_to_address(const addrinfo& address, double seconds) {
  FileDescriptor made = socket_for(address);
  if (!made.is_there()) return {};
  const bool has_begun =
      connect(made.number(), address.ai_addr, address.ai_addrlen) == 0 || errno == EINPROGRESS;
  return has_begun && comes_about(made, seconds) ? std::move(made) : FileDescriptor();
}

// Connects to one of the host's addresses. Divides the remaining time among the remaining addresses, so that
// an address that never answers does not use up all of it.
FileDescriptor connect_to_host(const std::string& host, int port, double until) {
  std::string problem;
  const Addresses found = addresses_of(host, port, 0, problem);
  int left = 0;
  for (const addrinfo* each = found.get(); each; each = each->ai_next) ++left;
  for (const addrinfo* each = found.get(); each; each = each->ai_next, --left) {
    const double seconds = std::max(until - seconds_now(), 0.0) / left;
    if (FileDescriptor made = connect_to_address(*each, seconds); made.is_there()) return made;
  }
  return {};
}

}  // namespace

FileDescriptor listen_at(const ListenAt& at, ServerPlace& place) {
  std::string problem;
  const Addresses found = addresses_of(at.address, at.port, AI_PASSIVE, problem);
  for (const addrinfo* each = found.get(); each; each = each->ai_next) {
    FileDescriptor listener = socket_for(*each);
    if (listener.is_there() && listens(listener, *each)) {
      place.host = stands_for_all(*each) ? own_name() : at.address;
      place.port = port_of(listener);
      return listener;
    }
    problem = std::generic_category().message(errno);
  }
  throw UserError(
      fmt::format("--serve cannot listen at {}{}: {}; give --address an address of this host, and --port a "
                  "port that is free",
                  at.address, at.port > 0 ? fmt::format(", port {}", at.port) : "", problem));
}

// Name resolution may not know the name of this host itself, so local addresses are tried as well.
FileDescriptor connect_to(const ServerPlace& place, double seconds) {
  std::vector<std::string> hosts{place.host};
  if (place.host == own_name()) hosts.insert(hosts.end(), {"127.0.0.1", "::1"});
  return connect_to_any(hosts, place.port, seconds);
}

FileDescriptor connect_to_any(const std::vector<std::string>& hosts, int port, double seconds) {
  const double until = seconds_now() + seconds;
  auto left = static_cast<double>(hosts.size());
  for (const std::string& host : hosts) {
    const double now = seconds_now();
    const double until_next = now + std::max(until - now, 0.0) / left--;
    if (FileDescriptor made = connect_to_host(host, port, until_next); made.is_there()) return made;
  }
  return {};
}

}  // namespace plexaura
