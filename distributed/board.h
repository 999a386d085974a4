#pragma once

#include <cstdint>
#include <vector>

#include "distributed/alarm.h"
#include "distributed/announcement.h"
#include "distributed/places.h"
#include "distributed/roll_call.h"
#include "distributed/shared_window.h"

namespace plexaura {

// Where the ranks of one node meet without messages: each has a seat in shared memory on which it notes how
// far it is. Meeting costs about as much as two cores need to see each other's writes.
class Board final : public RollCall {
 public:
  static std::size_t bytes_per_rank();

  // `window` is shared by the ranks of this node, zero at first; its first bytes_per_rank() bytes become the
  // seats. Places and alarm must outlive the board.
  Board(const SharedWindow& window, const Places& places, Alarm& alarm, double deadline_seconds);

  // Of the ranks of this node only: a roll call of all ranks where there is one node.
  void meet(Announcement mine) override;

  // A barrier of the node in the middle of the call last announced to it or passed here: what the ranks wrote
  // before is visible to all after.
  void barrier(const Announcement& during);

  // Tells waiting ranks that this one is at work: their deadlines count from now.
  void beat();

 private:
  struct Seat;
  using Counter = std::uint64_t (*)(const Seat&);

  Seat& seat(int node_rank) const;
  void wait_for_all(Counter counter, std::uint64_t value, const Announcement& at);
  void check_all_match();
  std::uint64_t beats() const;

  std::vector<std::byte*> seats_;
  const Places& places_;
  Alarm& alarm_;
  double deadline_;
  std::uint64_t meetings_ = 0;
  std::uint64_t barriers_ = 0;
};

}  // namespace plexaura
