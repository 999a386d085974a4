#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "distributed/failure/alarm.h"
#include "distributed/group/call_signature.h"
#include "distributed/group/topology.h"
#include "distributed/group/transport.h"

namespace plexaura {

// Which ranks see each other's memory, and how a sum travels between such groups so that it is added in the
// order of ranks: forward through the *runs* (ranks that follow each other within one group), and back
// through the groups.
struct Route {
  struct Run {
    int group = 0;
    std::vector<int> members;  // positions within the group, ascending
  };

  std::vector<std::vector<int>> groups;  // ranks, ascending
  std::vector<Run> runs;                 // in the order of ranks
  std::vector<int> way_back;             // groups, beginning with the last run's
  int workers = 0;  // ranks of each group that carry pieces: as many as the smallest group has

  // Groups: the ranks of each node, or every rank by itself.
  static Route over_nodes(const Topology& topology);
  static Route over_ranks(int ranks);
};

// Sums arrays of several groups with messages of 1 MB, several on their way over each link at a time. Each
// element is summed in the order of ranks, however the elements are cut. On a line of groups every link carries
// the data once forward and once back, which is what a ring does, too.
class ChainSum {
 public:
  // Transport, topology and alarm must outlive it. The route is the same on all ranks. A rank gives up when
  // nothing has moved for `deadline_seconds`.
  ChainSum(Transport& transport, Route route, const Topology& topology, Alarm& alarm,
           double deadline_seconds);

  // Sums `call.count` elements of type `call.dtype`. `arrays` are those of this rank's group in the order of
  // ranks (its own alone where groups are single ranks); all ranks are known to be here. Afterwards the
  // pieces that this rank carries hold the sums in all of them. `on_progress` is called for each piece.
  void run(const CallSignature& call, std::span<std::byte* const> arrays,
           const std::function<void()>& on_progress);

 private:
  // One thing this group does with each piece: take in, add or store, pass on.
  struct Step {
    int from = -1;          // group; -1: begins here
    int to = -1;            // group; -1: ends here
    std::vector<int> adds;  // members to add
    bool stores = false;    // the piece is a result: write it to all members
    int tag_in = 0;
    int tag_out = 0;
  };
  // Takes one piece after the other through one step. Nobody here waits for a piece's way back: its next step
  // has slots of its own.
  struct Slot {
    enum class State { idle, receiving, sending };
    State state = State::idle;
    std::size_t step = 0;
    int number = 0;          // within the step
    std::int64_t first = 0;  // element
    std::int64_t count = 0;
    Request request;
    std::vector<std::byte> buffer;
  };
  struct Job;

  void plan_steps();
  void carry(const CallSignature& call, std::span<std::byte* const> arrays,
             const std::function<void()>& on_progress);
  void give_up();
  int rank_of(int group) const {
    return route_.groups[static_cast<std::size_t>(group)][static_cast<std::size_t>(worker_)];
  }
  bool advance(Slot& slot, Job& job);
  void enter(Slot& slot, std::int64_t first, Job& job);
  void work(Slot& slot, Job& job);

  Transport& transport_;
  Route route_;
  const Topology& topology_;
  Alarm& alarm_;
  double deadline_;
  int group_ = 0;
  int worker_ = 0;
  std::vector<Step> steps_;
  std::vector<Slot> slots_;
};

}  // namespace plexaura
