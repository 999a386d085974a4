#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "distributed/wire/transport.h"

namespace plexaura {

// Messages that are expected, counted from the one that was expected first. Each arrives in memory of its own; what
// has not come when this goes, because somebody threw, is given to the transport to keep. Allocates nothing once it
// has held as many messages of that length before.
class Inbox {
 public:
  // The transport must outlive it.
  explicit Inbox(Transport& transport) : transport_(transport) {}
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  void expect(std::size_t bytes, int from, int tag);

  // Whether the oldest `count` messages have come; makes progress, never waits.
  bool have_come(std::size_t count);
  // One that has come. Good until it is dropped.
  std::span<const std::byte> message(std::size_t index) const;
  void drop(std::size_t count);

 private:
  struct Message {
    bool has_come = false;
    std::size_t bytes = 0;
    Request request;
    std::vector<std::byte> data;  // never gets smaller
  };

  std::size_t at(std::size_t index) const { return (first_ + index) % messages_.size(); }

  Transport& transport_;
  std::vector<Message> messages_;  // a ring: those that are expected follow each other
  std::size_t first_ = 0;
  std::size_t expected_ = 0;
};

}  // namespace plexaura
