#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "distributed/wire/transport.h"

namespace plexaura {

// Messages that are sent while their rank continues. Each message is copied, so that the caller may reuse its
// memory at once. If messages have not left when the outbox is destroyed, because of an exception, the
// transport keeps their memory. Allocates nothing after it has held as many messages of that length before.
class Outbox {
 public:
  // The transport must outlive this object.
  explicit Outbox(Transport& transport) : transport_(transport) {}
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Sends a copy of `data`. If `data` is the draft, sends the draft itself.
  void send(std::span<const std::byte> data, int to, int tag);
  // Returns memory for the next message, which the caller fills and passes to send().
  std::span<std::byte> draft(std::size_t bytes);

  // Returns the number of messages that have not left yet. Makes progress, and never waits.
  std::size_t under_way();
  bool all_left() { return under_way() == 0; }
  // The messages to one rank that have not left yet.
  struct Load {
    std::size_t bytes = 0;    // bytes of all these messages
    std::size_t longest = 0;  // bytes of the longest of them
  };
  Load load(int to);

 private:
  struct Message {
    int to = 0;
    bool under_way = false;
    std::size_t bytes = 0;
    Request request;
    std::vector<std::byte> data;  // memory of the message; never shrinks

    std::span<std::byte> content() { return std::span(data).first(bytes); }
  };

  Transport& transport_;
  std::vector<Message> messages_;
  // Indices of messages_ whose message has left; the last one is reused first.
  std::vector<std::size_t> free_;
  // The index of the message that is being filled.
  std::optional<std::size_t> draft_;
};

}  // namespace plexaura
