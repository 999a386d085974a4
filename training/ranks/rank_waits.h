#pragma once

#include <optional>
#include <vector>

#include "core/exchange/collective.h"

namespace plexaura {

// How long each rank has waited in the steps of an epoch: in calls of all ranks, what it adds and copies there included, and
// for a server.
struct RankWaits {
  struct Rank {
    int number = 0;  // as people call it
    double seconds = 0;
  };
  // The rank that the others wait for. It comes to each call last, and so it waits least.
  struct Straggler {
    int number = 0;
    double seconds = 0;  // by which the others waited longer, as a median
  };

  double epoch_seconds = 0;
  std::vector<Rank> ranks = {};
  bool meet_in_steps = true;  // else each makes steps without the others, and none of them waits for another

  // Of the time of all ranks.
  double share() const;
  // None where the others waited for less than 0.1 s, or 5 % of the epoch, and where ranks do not meet in steps.
  std::optional<Straggler> straggler() const;
};

// All ranks together.
RankWaits gather_waits(Collective& ranks, const RankWaits::Rank& mine, double epoch_seconds);

}  // namespace plexaura
