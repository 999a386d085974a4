#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "distributed/wire/transport.h"

namespace plexaura {

// Messages that leave while their rank goes on. Each lies in memory of its own, so that the sender's is free at once.
// What has not left when this goes, because somebody threw, is given to the transport to keep. Allocates nothing
// once it has held as many messages of that length before.
class Outbox {
 public:
  // The transport must outlive it.
  explicit Outbox(Transport& transport) : transport_(transport) {}
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Sends a copy.
  void send(std::span<const std::byte> data, int to, int tag);
  // Room for one message, which post() sends when it is filled.
  std::span<std::byte> draft(std::size_t bytes);
  void post(int to, int tag);

  // How many messages have not left yet; makes progress, never waits.
  std::size_t under_way();
  bool all_left() { return under_way() == 0; }
  // Of those to one rank that have not left.
  struct Load {
    std::size_t bytes = 0;    // of all
    std::size_t longest = 0;  // of one
  };
  Load load(int to);

 private:
  struct Message {
    int to = 0;
    bool under_way = false;
    std::size_t bytes = 0;
    Request request;
    std::vector<std::byte> data;  // never gets smaller

    std::span<std::byte> content() { return std::span(data).first(bytes); }
  };

  Transport& transport_;
  std::vector<Message> messages_;
  std::vector<std::size_t> free_;  // of them; used again, those that have left last first
  // Of them: that which is being filled.
  std::optional<std::size_t> draft_;
};

}  // namespace plexaura
