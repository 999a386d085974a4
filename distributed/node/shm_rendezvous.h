#pragma once

#include <cstdint>
#include <vector>

#include "distributed/failure/alarm.h"
#include "distributed/node/call_check.h"
#include "distributed/node/shared_window.h"
#include "distributed/wire/call_signature.h"
#include "distributed/wire/topology.h"

namespace plexaura {

// Where the ranks of one node meet without messages: each has a seat in shared memory on which it notes how
// far it is. Meeting costs about as much as two cores need to see each other's writes.
class ShmRendezvous final : public CallCheck {
 public:
  static std::size_t bytes_per_rank();

  // `window` is shared by the ranks of this node, zero at first; its first bytes_per_rank() bytes become the
  // seats. Topology and alarm must outlive the rendezvous. `deadline_seconds`: of barrier().
  ShmRendezvous(const SharedWindow& window, const Topology& topology, Alarm& alarm, double deadline_seconds);

  // Of the ranks of this node only: a call check of all ranks where there is one node.
  std::uint8_t meet(CallSignature mine, double deadline_seconds) override;

  // A barrier of the node in the middle of the call last announced to it or passed here: what the ranks wrote
  // before is visible to all after.
  void barrier(const CallSignature& during);

  // Tells waiting ranks that this one is at work: their deadlines count from now.
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
