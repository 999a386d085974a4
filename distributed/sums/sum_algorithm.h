#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "distributed/failure/alarm.h"
#include "distributed/node/shared_window.h"
#include "distributed/node/shm_rendezvous.h"
#include "distributed/sums/pace_choice.h"
#include "distributed/sums/sum_order.h"
#include "distributed/wire/call_signature.h"
#include "distributed/wire/inbox.h"
#include "distributed/wire/outbox.h"
#include "distributed/wire/topology.h"
#include "distributed/wire/transport.h"

namespace plexaura {

// Arrays are sent in messages of at most this length. Open MPI sends a message at once if it is at most 64 KiB with
// its header (btl_tcp_eager_limit). For a longer message it first asks the receiver, and the question waits
// after all data in the queue: two hosts then reached 75 % of 1 Gbit/s instead of 95 %
// (docs/lab/performance.md).
inline constexpr std::int64_t message_bytes = std::int64_t{60} << 10;

// The objects that sum algorithms use. They must outlive the algorithms.
struct SumMeans {
  Transport& transport;
  const Topology& topology;
  Alarm& alarm;
  double deadline_seconds;
  PaceChoice& paces;  // records the times of calls
  // Memory for copies, of which the last WindowSum::bytes_per_rank bytes are used. This and the rendezvous are
  // null if the ranks of a node do not share memory.
  const SharedWindow* staging = nullptr;
  ShmRendezvous* rendezvous = nullptr;
  // The shards whose sum each rank passes; empty: each rank has one shard.
  std::vector<ShardRange> shards = {};

  ShardRange shards_of(int rank) const {
    return shards.empty() ? ShardRange{rank, rank + 1} : shards[static_cast<std::size_t>(rank)];
  }

  // Wait until the oldest `count` messages have arrived, or until all messages have left. Throw an Error (see
  // speaks()) if another rank is lost, and if nothing arrives before the deadline.
  void wait_for(Inbox& inbox, std::size_t count, const CallSignature& call) const;
  void wait_for(Outbox& outbox, const CallSignature& call) const;
};

// An algorithm by which the ranks of a communicator add arrays of `call.count` elements, and exchange parts
// of them. Part r is part_of(call.count, call.dtype, r, ranks). The caller has checked that all ranks make
// the same call. Each function throws a DeviceError if another rank is lost during it. Then this rank writes
// nothing more, but other ranks of its node may write to its window until they learn of the loss.
class SumAlgorithm {
 public:
  virtual ~SumAlgorithm();

  // True if elements are added in the order of sum_order.h. All such algorithms give the same bits. Other
  // algorithms may give other bits for another size of buckets or another number of hosts.
  virtual bool keeps_order() const = 0;

  // True if the message library computes the sums, so that the bytes it sends are unknown.
  virtual bool is_of_library() const { return false; }

  // Passes this rank's array before the ranks meet for sum(), so that a small array can be copied at the
  // meeting.
  virtual void bring(const CallSignature& call, const std::byte* data);

  // Leaves the sums in this rank's part of `data`, and unspecified values elsewhere.
  virtual void reduce_scatter(const CallSignature& call, std::byte* data) = 0;
  // Copies each rank's part to all other ranks. Copies bytes, whatever the type.
  virtual void all_gather(const CallSignature& call, std::byte* data) = 0;
  // Leaves the sums in `data`. `windows` has the arrays of this node's ranks, in their order, if this rank
  // can access them; otherwise it is empty.
  virtual void sum(const CallSignature& call, std::byte* data, std::span<std::byte* const> windows) = 0;
};

}  // namespace plexaura
