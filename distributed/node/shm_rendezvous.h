#pragma once

#include <cstdint>
#include <vector>

#include "distributed/failure/alarm.h"
#include "distributed/node/call_check.h"
#include "distributed/node/shared_window.h"
#include "distributed/wire/call_signature.h"
#include "distributed/wire/topology.h"

namespace plexaura {

// A meeting of the ranks of one node without messages: each rank has a seat in shared memory, in which it
// stores how far it is. A meeting costs about as much as two cores need to see each other's writes.
class ShmRendezvous final : public CallCheck {
 public:
  static std::size_t bytes_per_rank();

  // `window`: shared by the ranks of this node and zeroed; its first bytes_per_rank() bytes become the seats.
  // `topology` and `alarm` must outlive the rendezvous. `deadline_seconds`: the deadline of barrier().
  ShmRendezvous(const SharedWindow& window, const Topology& topology, Alarm& alarm, double deadline_seconds);

  // Checks the ranks of this node only. If there is one node, it is a call check of all ranks.
  std::uint8_t meet(CallSignature mine, double deadline_seconds) override;

  // A barrier of the node within the call `during`: memory that the ranks have written before is visible to
  // all of them afterwards.
  void barrier(const CallSignature& during);

  // Shows waiting ranks that this one is working. Their deadlines restart.
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
