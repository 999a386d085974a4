#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <poll.h>
#include <stop_token>
#include <sys/socket.h>
#include <thread>
#include <utility>

#include "core/base/file_descriptor.h"

namespace plexaura::testing {

// A link in front of a connection that may become slow. Then it passes on 16 bytes at a time from its near
// end, with a pause before each group.
class SlowLink {
 public:
  explicit SlowLink(FileDescriptor connection) : far_(std::move(connection)) {
    std::array<int, 2> ends{-1, -1};
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data());
    near_ = FileDescriptor(ends[0]);
    inner_ = FileDescriptor(ends[1]);
    pump_ = std::jthread([this](const std::stop_token& stop) { pump(stop); });
  }

  FileDescriptor take_near_end() { return std::move(near_); }
  void slow_down(std::chrono::milliseconds pause) { pause_ = pause.count(); }

 private:
  void pump(const std::stop_token& stop) {
    std::array<pollfd, 2> waits{pollfd{inner_.number(), POLLIN, 0}, pollfd{far_.number(), POLLIN, 0}};
    while (!stop.stop_requested()) {
      poll(waits.data(), waits.size(), 10);
      pass_on(inner_, far_, pause_);
      pass_on(far_, inner_, 0);
    }
  }

  static void pass_on(const FileDescriptor& from, const FileDescriptor& to, std::int64_t pause) {
    std::array<std::byte, 1 << 12> bytes{};
    const ssize_t got = recv(from.number(), bytes.data(), pause > 0 ? 16 : bytes.size(), MSG_DONTWAIT);
    if (got == 0) shutdown(to.number(), SHUT_WR);
    if (got <= 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    send(to.number(), bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
  }

  FileDescriptor far_;
  FileDescriptor near_;
  FileDescriptor inner_;
  std::atomic<std::int64_t> pause_ = 0;  // milliseconds
  std::jthread pump_;                    // destroyed first
};

}  // namespace plexaura::testing
