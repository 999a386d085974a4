#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/params/weights_immigration.h"
#include "distributed/communicator.h"

namespace plexaura {

// The names that make_strategy() knows: the values of distributed.strategy.
const std::vector<std::string>& strategy_names();

// How the ranks of this run work together:
//   allreduce         gradients are summed by all ranks, each its part, inside a node right where they lie
//   reduce-broadcast  gradients are summed by rank 0, which sends the sums back
// Both give the same bits as one another, in every run and for every size of the buckets. Null where the
// communicator has one rank: there is nothing to exchange, and a step without a strategy has no host points.
// The communicator must outlive the strategy and is used by it on the thread that trains, between other calls
// on that thread. Throws UserError for an unknown name, on all ranks where one has it. Collective.
std::unique_ptr<Strategy> make_strategy(std::string_view name, Communicator& communicator);

}  // namespace plexaura
