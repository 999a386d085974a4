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

// Arrays travel in messages of so many bytes. Open MPI sends at once what is no longer than 64 KiB with its header
// (btl_tcp_eager_limit). A longer message first asks the receiver, and the question waits behind all that fills the line: two
// hosts then reached 75 % of 1 Gbit/s instead of 95 % (docs/lab/performance.md).
inline constexpr std::int64_t message_bytes = std::int64_t{60} << 10;

// What algorithms work with; it outlives them.
struct SumMeans {
  Transport& transport;
  const Topology& topology;
  Alarm& alarm;
  double deadline_seconds;
  PaceChoice& paces;  // gets to know what calls take
  // Both null where the ranks of a node do not share memory.
  const SharedWindow* staging = nullptr;  // its last WindowSum::bytes_per_rank
  ShmRendezvous* rendezvous = nullptr;
  std::vector<ShardRange> shards = {};  // what each rank brings; empty: one each

  ShardRange shards_of(int rank) const {
    return shards.empty() ? ShardRange{rank, rank + 1} : shards[static_cast<std::size_t>(rank)];
  }

  // Until the oldest `count` messages have come, or all have left. Throw an Error (see speaks()) where another
  // rank is lost, and where nothing comes before the deadline.
  void wait_for(Inbox& inbox, std::size_t count, const CallSignature& call) const;
  void wait_for(Outbox& outbox, const CallSignature& call) const;
};

// How the ranks of a communicator add up arrays of `call.count` elements, and hand parts of them to each other: part
// r is that of part_of(call.count, call.dtype, r, ranks). All ranks are known to be here and to mean the same call.
// Each function ends with a DeviceError where another rank is lost in the meantime, and then this rank
// writes nothing any more; others of its node may write to its window until they hear of the loss.
class SumAlgorithm {
 public:
  virtual ~SumAlgorithm();

  // Whether elements are added in the order of sum_order.h. All algorithms that do so give the same bits. Others may
  // give other bits for another size of buckets or another number of hosts.
  virtual bool keeps_order() const = 0;

  // Whether the library that carries messages makes the sums, so that nobody knows what it sends.
  virtual bool is_of_library() const { return false; }

  // Called before the ranks have met for sum() or sum_windows(), with this rank's array.
  virtual void bring(const CallSignature& call, const std::byte* data);

  // Afterwards this rank's part holds the sums, and the rest of `data` anything.
  virtual void reduce_scatter(const CallSignature& call, std::byte* data) = 0;
  // Copies this rank's part to all others, and theirs here. Of bytes, whatever the type.
  virtual void all_gather(const CallSignature& call, std::byte* data) = 0;
  // Both, one after the other, where there is no shorter way.
  virtual void sum(const CallSignature& call, std::byte* data);
  // sum() where each rank sees the arrays of its node: these, in the order of ranks, and `own` among them.
  virtual void sum_windows(const CallSignature& call, std::span<std::byte* const> windows, int own);
};

}  // namespace plexaura
