#pragma once

#include <cerrno>
#include <cstddef>
#include <poll.h>
#include <span>
#include <string>
#include <sys/socket.h>
#include <utility>

#include "distributed/servers/jobs/connection.h"
#include "distributed/servers/jobs/line.h"

namespace plexaura::testing {

inline const std::string a_key(64, '7');

// Works until both ends have proven to each other that they know the key.
inline void prove(Line& line) {
  while (!line.prove()) await_line(line, !line.has_sent_all(), 1);
}

// Waits for the next letter without a time limit.
inline LineLetter take_letter(Line& line) {
  while (true) {
    if (auto letter = line.take()) return *std::move(letter);
    await_line(line, false, 1);
  }
}

inline void post_letter(Line& line, const LineHead& head, std::span<const std::byte> content = {}) {
  line.post(head, content);
  while (!line.flush()) await_line(line, true, 1);
}

// Returns a connection of somebody who has the key, but may send what no client sends.
inline Line line_to(const ServerPlace& place) {
  Line line(connect_to(place, 10), Seal::Side::client, place.key, std::size_t{64} << 20);
  prove(line);
  return line;
}

// Returns a connection of somebody who has no key.
inline FileDescriptor stranger_to(const ServerPlace& place) { return connect_to(place, 10); }

inline void send_raw(const FileDescriptor& socket, std::span<const std::byte> bytes) {
  send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// Returns everything that arrives until the other end closes or breaks the connection.
inline std::string read_to_end(const FileDescriptor& socket) {
  std::string all;
  char next = 0;
  pollfd wait{socket.number(), POLLIN, 0};
  while (true) {
    poll(&wait, 1, -1);
    const ssize_t got = recv(socket.number(), &next, 1, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return all;
    if (got > 0) all += next;
  }
}

}  // namespace plexaura::testing
