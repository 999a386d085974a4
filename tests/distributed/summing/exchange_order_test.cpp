#include "distributed/summing/exchange_order.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "distributed/communicator/group_communicator.h"
#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing::exchange_order_test {

namespace {

using Order = std::vector<std::size_t>;

Order order_of(const std::vector<std::int64_t>& ready) { return last_first(ready); }

// Returns the order of buckets in a step. `ready` has the number of final buckets at each point.
Order order_of_step(ExchangeOrder& order, const std::vector<std::size_t>& ready, bool in_order) {
  Order taken;
  for (std::size_t place = 0; place < ready.size(); ++place)
    taken.push_back(order.bucket(place, ready[place], in_order, 1));
  return taken;
}

}  // namespace

TEST_CASE("exchange order: of the buckets that are final the last one is first") {
  CHECK(order_of({1, 2, 3, 4}) == Order{0, 1, 2, 3});
  CHECK(order_of({4, 4, 4, 4}) == Order{3, 2, 1, 0});
  CHECK(order_of({1, 3, 5, 5, 5}) == Order{0, 2, 4, 3, 1});
  // If no bucket is final, the next one that becomes final is taken.
  CHECK(order_of({1, 1, 4, 4}) == Order{0, 1, 3, 2});
  CHECK(order_of({}).empty());
}

TEST_CASE("exchange order: is that in which buckets become final until ranks agree on what all of them see") {
  ThreadNetwork network(2);
  const auto ends = endings(2, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {});
    ExchangeOrder order(ranks, 4);
    const std::vector<std::size_t> ready = rank == 0 ? Order{1, 4, 4, 4} : Order{2, 3, 4, 4};
    for (int step = 1; step <= 3; ++step)
      if (order_of_step(order, ready, false) != Order{0, 1, 2, 3}) throw InternalError("agreed too early");
    if (order_of_step(order, ready, false) != Order{0, 2, 3, 1}) throw InternalError("another order");
    ranks.leave(0);
  });
  CHECK(ends == std::vector<std::string>{"fine", "fine"});
}

TEST_CASE("exchange order: stays as it is where a rank needs the buckets in order") {
  ThreadNetwork network(2);
  const auto ends = endings(2, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {});
    ExchangeOrder order(ranks, 3);
    for (int step = 1; step <= 5; ++step)
      if (order_of_step(order, {3, 3, 3}, rank == 1) != Order{0, 1, 2}) throw InternalError("another order");
    ranks.leave(0);
  });
  CHECK(ends == std::vector<std::string>{"fine", "fine"});
}

}  // namespace plexaura::testing::exchange_order_test
