#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "distributed/wire/transport.h"

namespace plexaura {

// Messages that are sent while their rank continues. Each is copied to memory of its own, so that the
// sender's memory is free at once. If messages have not left when the outbox is destroyed, because of an
// exception, the transport keeps their memory. Allocates nothing after it has held as many messages of that
// length before.
class Outbox {
 public:
  // The transport must outlive it.
  explicit Outbox(Transport& transport) : transport_(transport) {}
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Sends a copy; or `data` itself if it is the draft.
  void send(std::span<const std::byte> data, int to, int tag);
  // Returns room for the next message, which the caller fills and sends.
  std::span<std::byte> draft(std::size_t bytes);

  // Returns how many messages have not left yet. Makes progress, and never waits.
  std::size_t under_way();
  bool all_left() { return under_way() == 0; }
  // The messages to one rank that have not left yet.
  struct Load {
    std::size_t bytes = 0;    // total size
    std::size_t longest = 0;  // size of the longest
  };
  Load load(int to);

 private:
  struct Message {
    int to = 0;
    bool under_way = false;
    std::size_t bytes = 0;
    Request request;
    std::vector<std::byte> data;  // never shrinks

    std::span<std::byte> content() { return std::span(data).first(bytes); }
  };

  Transport& transport_;
  std::vector<Message> messages_;
  std::vector<std::size_t> free_;  // indices of messages that have left; the last one is reused first
  // The index of the message that is being filled.
  std::optional<std::size_t> draft_;
};

}  // namespace plexaura
