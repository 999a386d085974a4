#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <sys/socket.h>
#include <thread>

#include "distributed/visiting/line.h"

namespace plexaura::testing {

// The next letter, however long it takes to come.
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

// Sends a letter as a slow link brings it: four bytes of its content at a time, with a pause before each.
inline void post_slowly(const Line& line, LineHead head, std::span<const std::byte> content,
                        std::chrono::milliseconds pause) {
  head.bytes = content.size();
  send(line.socket(), &head, sizeof head, MSG_NOSIGNAL);
  for (; !content.empty(); content = content.subspan(4)) {
    std::this_thread::sleep_for(pause);
    send(line.socket(), content.data(), 4, MSG_NOSIGNAL);
  }
}

}  // namespace plexaura::testing
