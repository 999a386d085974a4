#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/exchange/collective.h"

namespace plexaura {

// The order in which the next step gets its weights soonest: of the buckets that are final the last one is exchanged
// first, for that is what the next step needs first. `ready`: how many were final at each place of the order.
std::vector<std::size_t> last_first(std::span<const std::int64_t> ready);

// In which order the ranks exchange the buckets of a step. It is the same on all of them, and so cannot follow what a rank
// sees of the step; now and then they agree on what all have seen of the last one. Called on one thread.
class ExchangeOrder {
 public:
  // `ranks` make calls here, and must outlive this.
  ExchangeOrder(Collective& ranks, std::size_t buckets);

  // The bucket at this place of the order of this step; `ready`: how many are final now. `in_order`: this rank needs them as they
  // become final.
  std::size_t bucket(std::size_t place, std::size_t ready, bool in_order, std::int64_t step);

 private:
  void agree(std::int64_t step);

  Collective& ranks_;
  std::vector<std::size_t> order_;
  std::vector<std::int64_t> ready_;  // of this rank by place, in the last step
  std::vector<std::int64_t> all_;    // those of all ranks
  std::int64_t steps_ = 0;
};

}  // namespace plexaura
