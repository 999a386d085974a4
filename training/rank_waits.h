#pragma once

#include <optional>
#include <vector>

#include "core/ranks/collective.h"

namespace plexaura {

// How long each rank has waited for others in the steps of an epoch, in calls of all ranks: what it adds and copies there
// included.
struct RankWaits {
  struct Rank {
    int number = 0;  // as people call it
    double seconds = 0;
  };
  // Whom the others wait for comes last, and waits least.
  struct Straggler {
    int number = 0;
    double seconds = 0;  // by which the others waited longer, as a median
  };

  double epoch_seconds = 0;
  std::vector<Rank> ranks = {};

  // Of the time of all ranks.
  double share() const;
  // None where the others waited for less than 0.1 s, or 5 % of the epoch.
  std::optional<Straggler> straggler() const;
};

// All ranks together.
RankWaits gather_waits(Collective& ranks, const RankWaits::Rank& mine, double epoch_seconds);

}  // namespace plexaura
