#pragma once

#include <optional>
#include <vector>

#include "core/exchange/collective.h"

namespace plexaura {

// The time that each rank has waited during the steps of an epoch: in calls of all ranks, including their
// additions and copies, and for a server.
struct RankWaits {
  struct Rank {
    int number = 0;  // the rank's number in messages
    double seconds = 0;
  };
  // The rank for which the other ranks wait. It arrives last at each call, so it waits least.
  struct Straggler {
    int number = 0;
    double seconds = 0;  // median of the seconds by which the other ranks waited longer
  };

  double epoch_seconds = 0;
  std::vector<Rank> ranks = {};
  bool meet_in_steps = true;  // false: each rank makes steps without the others, and none waits for another

  // Returns the share of all ranks' time that was spent waiting, from 0 to 1.
  double share() const;
  // Returns the rank for which the others wait. Returns nothing if Straggler::seconds would be less than 0.1
  // s or less than 5 % of the epoch, if there is only one rank, or if ranks do not meet in steps.
  std::optional<Straggler> straggler() const;
};

// Collective. Gathers the waits of all ranks, on all ranks. `epoch_seconds` is the duration of the epoch.
RankWaits gather_waits(Collective& ranks, const RankWaits::Rank& mine, double epoch_seconds);

}  // namespace plexaura
