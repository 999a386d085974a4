#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/exchange/collective.h"

namespace plexaura {

// Returns the order in which the next step gets its weights soonest. Of the buckets that are final, the last
// one is exchanged first, because the next step needs it first. `ready` has, for each place of the order, the
// number of buckets that were final.
std::vector<std::size_t> last_first(std::span<const std::int64_t> ready);

// The order in which the ranks exchange the buckets of a step. It must be the same on all ranks, so it cannot
// depend on what one rank observes during the step. From time to time the ranks exchange what they have
// observed in the last step, and choose the next order by that. Must be used on one thread.
class ExchangeOrder {
 public:
  // The object makes its calls on `ranks`, which must outlive it.
  ExchangeOrder(Collective& ranks, std::size_t buckets);

  // Returns the bucket at this place of the step's order. `ready` is the number of buckets that are final
  // now. `in_order` is true if this rank needs the buckets in the order in which they become final.
  std::size_t bucket(std::size_t place, std::size_t ready, bool in_order, std::int64_t step);

 private:
  void agree(std::int64_t step);

  Collective& ranks_;
  std::vector<std::size_t> order_;
  // For each place of the order: the number of buckets that were final on this rank in the last step.
  std::vector<std::int64_t> ready_;
  std::vector<std::int64_t> all_;  // ready_ of all ranks, one rank after the other
  std::int64_t steps_ = 0;
};

}  // namespace plexaura
