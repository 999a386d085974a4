#pragma once

#include <cstdint>
#include <vector>

#include "distributed/failure/alarm.h"
#include "distributed/node/call_check.h"
#include "distributed/node/shared_window.h"
#include "distributed/wire/call_signature.h"
#include "distributed/wire/topology.h"

namespace plexaura {

// A meeting of the ranks of one node without messages. Each rank has a seat in shared memory, in which it
// stores the number of its present call. The cost of a meeting is about the time in which two cores see each
// other's writes.
class ShmRendezvous final : public CallCheck {
 public:
  static std::size_t bytes_per_rank();

  // `window` is shared by the ranks of this node, and zeroed. Its first bytes_per_rank() bytes become the
  // seats. `topology` and `alarm` must outlive the rendezvous. `deadline_seconds` is the deadline of
  // barrier().
  ShmRendezvous(const SharedWindow& window, const Topology& topology, Alarm& alarm, double deadline_seconds);

  // Checks the calls of this node's ranks only. If there is only one node, this is a check of all ranks.
  std::uint8_t meet(CallSignature mine, double deadline_seconds) override;

  // Waits, within the call `during`, until all ranks of the node have come. Memory that the ranks have
  // written before is visible to all of them afterwards.
  void barrier(const CallSignature& during);

  // Shows waiting ranks that this rank is working, so that their deadlines restart.
  void beat();

 private:
  struct Seat;
  using Counter = std::uint64_t (*)(const Seat&);

  Seat& seat(int node_rank) const;
  void wait_for_all(Counter counter, std::uint64_t value, const PendingCall& call);
  void check_all_match();
  std::uint64_t beats() const;

  std::vector<std::byte*> seats_;
  const Topology& topology_;
  Alarm& alarm_;
  double deadline_;
  std::uint64_t meetings_ = 0;
  std::uint64_t barriers_ = 0;
};

}  // namespace plexaura
