#include "distributed/node/shm_rendezvous.h"

#include <doctest/doctest.h>
#include <thread>

#include "tests/distributed/wire/thread_transport.h"
#include "tests/distributed/wire/topology_support.h"

namespace plexaura::testing::shm_rendezvous_test {
namespace {

constexpr int rank_count = 3;
constexpr double test_deadline = 30;

// Returns how three ranks of one node end that call the function with a rendezvous.
std::vector<std::string> with_rendezvous(const std::function<void(ShmRendezvous&, int rank)>& body) {
  std::vector<std::string> addresses;
  std::vector<SharedSegment> made;
  for (int rank = 0; rank < rank_count; ++rank) {
    made.push_back(SharedSegment::create(ShmRendezvous::bytes_per_rank()));
    addresses.push_back(made.back().address());
  }
  ThreadNetwork network(rank_count);
  return endings(rank_count, [&](int rank) {
    std::vector<SharedSegment> segments;
    for (const std::string& address : addresses) {
      segments.push_back(SharedSegment::attach(address, ShmRendezvous::bytes_per_rank()).value());
    }
    const SharedWindow window(std::move(segments), rank, ShmRendezvous::bytes_per_rank());
    const Topology topology = on_hosts({"a", "a", "a"}, rank);
    Alarm alarm(network.transport(rank));
    ShmRendezvous rendezvous(window, topology, alarm, test_deadline);
    body(rendezvous, rank);
  });
}

}  // namespace

TEST_CASE("rendezvous: nobody passes before all have come") {
  std::atomic<int> present = 0;
  std::atomic<int> early = 0;
  const auto ends = with_rendezvous([&](ShmRendezvous& rendezvous, int) {
    for (int round = 1; round <= 200; ++round) {
      ++present;
      rendezvous.meet(announce(Call::sum, "values", DType::float32, round), test_deadline);
      if (present < round * rank_count) ++early;
      rendezvous.barrier(announce(Call::barrier, "the end of a round"));
    }
  });
  CHECK(count_endings(ends, "fine") == rank_count);
  CHECK(early == 0);
}

TEST_CASE("rendezvous: of ranks at different calls the lowest says so") {
  const auto ends = with_rendezvous([](ShmRendezvous& rendezvous, int rank) {
    rendezvous.meet(announce(Call::barrier, "the first"), test_deadline);
    rendezvous.meet(announce(Call::sum, "values", DType::float32, rank == 1 ? 7 : 8), test_deadline);
  });
  const std::string text =
      "rank 0 is at 'values' (sum of 8 float32) while rank 1 is at 'values' (sum of 7 float32): all ranks "
      "must "
      "make the same calls in the same order";
  CHECK(ends == std::vector<std::string>{"says " + text, "hears " + text, "hears " + text});
}

TEST_CASE("rendezvous: a rank that leaves in error has reported that itself") {
  for (const int leaver : {0, 2}) {
    const auto ends = with_rendezvous([&](ShmRendezvous& rendezvous, int rank) {
      rendezvous.meet(announce(rank == leaver ? Call::leave_in_error : Call::barrier, "the first"),
                      test_deadline);
    });
    CAPTURE(ends);
    CHECK(count_endings(ends, "hears rank " + std::to_string(leaver) +
                                  " has left with an error of its own, which it reports") == rank_count);
  }
}

TEST_CASE("rendezvous: a rank that does not come is named once, and beats postpone that") {
  const auto ends = with_rendezvous([](ShmRendezvous& rendezvous, int rank) {
    if (rank == 0) return;
    if (rank == 1) {
      for (int i = 0; i < 25; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        rendezvous.beat();
      }
    }
    rendezvous.meet(announce(Call::barrier, "the first"), 2);
  });
  CHECK(count_endings(ends, "says rank 0 did not come to 'the first' (barrier) within 2 s") == 1);
  CHECK(count_endings(ends, "hears rank 0 did not come") == 1);
}

}  // namespace plexaura::testing::shm_rendezvous_test
