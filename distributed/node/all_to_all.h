#pragma once

#include <cstddef>
#include <span>

#include "distributed/failure/alarm.h"
#include "distributed/failure/rank_wait.h"
#include "distributed/wire/call_signature.h"
#include "distributed/wire/inbox.h"
#include "distributed/wire/outbox.h"
#include "distributed/wire/topology.h"
#include "distributed/wire/transport.h"

namespace plexaura {

// Each rank sends a block of bytes to each other rank. Blocks are sent in pieces, so that each arriving piece
// shows a waiting rank that the sender is working.
class AllToAll {
 public:
  // All arguments must outlive this object.
  AllToAll(Transport& transport, const Topology& topology, Alarm& alarm)
      : transport_(transport), topology_(topology), alarm_(alarm), inbox_(transport), outbox_(transport) {}

  // Exchanges the blocks. `call.count` is the length of a block in bytes. The caller has checked that all
  // ranks make the same call. Throws an Error (see speaks()) if another rank is lost, or if nothing arrives
  // before the deadline.
  void run(const CallSignature& call, double deadline_seconds, std::span<const std::byte> blocks,
           std::span<std::byte> received);

 private:
  // A range of bytes, the same in each block, that is sent in one message.
  struct Piece {
    std::size_t begin;
    std::size_t bytes;
    std::size_t block;  // bytes of the whole block

    std::size_t at(int rank) const { return static_cast<std::size_t>(rank) * block + begin; }
  };
  void expect(const Piece& piece);
  void send(const Piece& piece, std::span<const std::byte> blocks);
  void take(const Piece& piece, std::span<std::byte> received, RankWait& wait);

  Transport& transport_;
  const Topology& topology_;
  Alarm& alarm_;
  Inbox inbox_;
  Outbox outbox_;
};

}  // namespace plexaura
