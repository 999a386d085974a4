#include "distributed/sums/window_sum.h"

#include <chrono>
#include <doctest/doctest.h>
#include <thread>

#include "core/base/error.h"
#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing::window_sum_test {

TEST_CASE("window sum: a rank may bring the summands of the next call while another still adds") {
  constexpr int rank_count = 3;
  constexpr std::int64_t most = WindowSum::small_bytes / sizeof(std::int64_t);
  ThreadNetwork network(rank_count);
  const auto ends = with_hosts(network, {"a", "a", "a"}, {}, [&](Communicator& ranks) {
    for (std::int64_t call = 1; call <= 300; ++call) {
      // sometimes more than the call's own elements
      const std::int64_t count = call % 2 == 0 ? most : most + 1 - call % 3;
      std::vector<std::int64_t> values(static_cast<std::size_t>(count), call * (1 + ranks.rank()));
      ranks.sum(DType::int64, reinterpret_cast<std::byte*>(values.data()), count, "values");
      if (values != std::vector<std::int64_t>(values.size(), 6 * call)) throw InternalError("a sum is wrong");
      if (call % rank_count == ranks.rank()) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
}

}  // namespace plexaura::testing::window_sum_test
