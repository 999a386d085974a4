#include "distributed/communicator/time_calls.h"

#include <chrono>
#include <doctest/doctest.h>
#include <thread>

#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing::time_calls_test {

namespace {

void on_two_ranks(const std::function<void(Communicator&)>& body) {
  ThreadNetwork network(2);
  CHECK(count_endings(with_hosts(network, {"a", "b"}, {}, body), "fine") == 2);
}

}  // namespace

TEST_CASE("times of calls: the median, of the rank where that is longest") {
  on_two_ranks([](Communicator& ranks) {
    double next = ranks.rank();
    // The calls return 1, 2 and 3 on rank 0, and 2, 3 and 4 on rank 1.
    const double median = time_of(
        ranks, 3, [&] { return next += 1; }, "a test");
    if (median != doctest::Approx(3)) throw InternalError("test failed");
  });
}

TEST_CASE("times of calls: latency and speed of a line") {
  on_two_ranks([](Communicator& ranks) {
    const auto call = [](std::int64_t bytes) {
      std::this_thread::sleep_for(std::chrono::duration<double>(2e-3 + 1e-7 * static_cast<double>(bytes)));
    };
    const CallEffort effort{
        .first_bytes = 1 << 14, .most_bytes = 1 << 20, .seconds_of_call = 0.02, .seconds_for_calls = 0.1};
    const CallSpeed speed = speed_of(ranks, call, effort, "a test");
    if (speed.latency < 2e-3 || speed.latency > 10e-3) throw InternalError("latency");
    if (speed.bytes_per_second < 0.5e7 || speed.bytes_per_second > 2e7) throw InternalError("speed");
    if (latency_of(ranks, call, "a test") < 2e-3) throw InternalError("latency again");
  });
}

}  // namespace plexaura::testing::time_calls_test
