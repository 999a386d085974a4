#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "distributed/wire/transport.h"

namespace plexaura {

// The messages that this rank expects, numbered from the oldest one. Each arrives in memory of its own. If
// messages have not arrived when the inbox is destroyed, because of an exception, the transport keeps their
// memory. Allocates nothing after it has held as many messages of that length before.
class Inbox {
 public:
  // The transport must outlive this object.
  explicit Inbox(Transport& transport) : transport_(transport) {}
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  void expect(std::size_t bytes, int from, int tag);

  // True if the oldest `count` messages have arrived. Makes progress, and never waits.
  bool have_come(std::size_t count);
  // Returns a message that has arrived. Valid until it is dropped.
  std::span<const std::byte> message(std::size_t index) const;
  void drop(std::size_t count);

 private:
  struct Message {
    bool has_come = false;
    std::size_t bytes = 0;
    Request request;
    std::vector<std::byte> data;  // memory of the message; never shrinks
  };

  std::size_t at(std::size_t index) const { return (first_ + index) % messages_.size(); }

  Transport& transport_;
  std::vector<Message> messages_;  // a ring, in which the expected messages are consecutive
  std::size_t first_ = 0;
  std::size_t expected_ = 0;
};

}  // namespace plexaura
