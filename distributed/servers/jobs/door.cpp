#include "distributed/servers/jobs/door.h"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <utility>

#include "core/base/clock.h"

namespace plexaura {

namespace {

constexpr double quiet_seconds = 60;  // seconds between two warnings of one kind
constexpr int most_in_reserve = 32;   // largest number of descriptors that are kept free

// Returns the descriptor that the system would assign next, which is the lowest free number. Returns a
// negative number if none is free.
int next_descriptor(int any) {
  const FileDescriptor next(fcntl(any, F_DUPFD_CLOEXEC, 0));
  return next.number();
}

int descriptors_of_process() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 30));
}

std::string name_of_address(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> name{};
  const bool is_known = getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, name.data(),
                                    name.size(), nullptr, 0, NI_NUMERICHOST) == 0;
  const std::string text = is_known ? name.data() : "an unknown address";
  // The text before the IPv4 address of a client if the server listens for IPv6, too.
  constexpr std::string_view ipv4 = "::ffff:";
  return text.starts_with(ipv4) ? text.substr(ipv4.size()) : text;
}

bool is_due(double& told_at) {
  const double now = seconds_now();
  if (now - told_at < quiet_seconds) return false;
  told_at = now;
  return true;
}

}  // namespace

Door::Door(FileDescriptor listener, Warn warn)
    : listener_(std::move(listener)),
      warn_(std::move(warn)),
      told_shut_at_(seconds_now() - quiet_seconds),
      told_turned_away_at_(told_shut_at_) {}

bool Door::is_open() const {
  const int all = descriptors_of_process();
  const int next = next_descriptor(listener());
  return next >= 0 && next < all - std::min(most_in_reserve, all / 2);
}

void Door::report_shut() {
  if (is_due(told_shut_at_))
    warn_(fmt::format(
        "no other client can join for now: few of the {} descriptors that this process may have are free, "
        "and checkpoints need these; raise 'ulimit -n'",
        descriptors_of_process()));
}

bool Door::is_somebody_waiting() const {
  pollfd wait{listener(), POLLIN, 0};
  return poll(&wait, 1, 0) > 0;
}

Door::Newcomer Door::let_in() {
  if (!is_open()) return {};
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  FileDescriptor socket(
      accept4(listener(), reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_there()) return {};
  return {std::move(socket), name_of_address(address, size)};
}

void Door::note_turned_away(const std::string& from, const std::string& why) {
  ++turned_away_;
  last_ = fmt::format("from {} was turned away: {}", from, why);
  report_turned_away(false);
}

void Door::report_turned_away(bool is_at_end) {
  if (turned_away_ == 0 || (!is_at_end && !is_due(told_turned_away_at_))) return;
  const std::size_t others = std::exchange(turned_away_, 0) - 1;
  warn_(others == 0 ? "a client " + last_
                    : fmt::format("a client {} (and {} more before it, in the last minute)", last_, others));
}

}  // namespace plexaura
