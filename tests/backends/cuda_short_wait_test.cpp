// Tests how long the host polls before it sleeps, with a fake clock.

#include <doctest/doctest.h>

#include "backends/cuda/runtime/short_wait.h"

namespace plexaura::testing::cuda_short_wait_test {

TEST_CASE("a short wait for CUDA ends as soon as it is told so, and else in time") {
  double time = 10;
  int asked = 0;
  const auto now = [&] { return time; };
  const auto passed_when = [&](int answer) {
    return [&, answer] {
      time += 1;
      return ++asked == answer;
    };
  };
  CHECK(cuda::runtime::passes_within(5, passed_when(3), now));
  CHECK(asked == 3);
  asked = 0;
  CHECK_FALSE(cuda::runtime::passes_within(5, passed_when(100), now));
  CHECK(asked == 5);
  asked = 0;
  CHECK(cuda::runtime::passes_within(0, passed_when(1), now));
}

}  // namespace plexaura::testing::cuda_short_wait_test
