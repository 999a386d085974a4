#include "core/ops/philox.h"

#include <doctest/doctest.h>

namespace plexaura::testing::philox_test {

// The last step of MurmurHash3, as its author publishes it (fmix64).
TEST_CASE("seeds and streams are spread by the finaliser of MurmurHash3") {
  CHECK(philox::spread(0) == 0);
  CHECK(philox::spread(1) == 0xB456BCFC34C2CB2CU);
  CHECK(philox::spread(0xDEADBEEFU) == 0xD24BD59F862A1DACU);
}

TEST_CASE("no bit of the step, the index or the key is lost") {
  const std::int64_t high = std::int64_t{1} << 32;
  const philox::Draws draws(1, 3 * high + 7, 2);
  const philox::Block counter = draws.counter(5 * high + 9);
  CHECK(counter.words[0] == 9);
  CHECK(counter.words[1] == 5);
  CHECK(counter.words[2] == 7);
  CHECK(counter.words[3] == 3);
  CHECK(draws.key == philox::spread(1 ^ philox::spread(2)));
  CHECK(draws.first_key().words[0] == static_cast<std::uint32_t>(draws.key));
  CHECK(draws.first_key().words[1] == draws.key >> 32);
}

}  // namespace plexaura::testing::philox_test
