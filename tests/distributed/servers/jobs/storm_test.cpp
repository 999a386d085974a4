#include "tests/distributed/servers/jobs/storm.h"

#include <algorithm>
#include <cstdint>
#include <doctest/doctest.h>
#include <random>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace plexaura::testing::storm_test {

namespace {

// Returns random bytes: many small ones, which choose the first of several alternatives, and some of any
// value.
std::vector<std::byte> random_bytes(std::mt19937& random) {
  std::vector<std::byte> bytes(random() % 400 + 1);
  const std::uint32_t most = random() % 3 == 0 ? 256 : 10;
  std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random() % most); });
  return bytes;
}

}  // namespace

// tests/fuzz/letters.sh runs the same with inputs of a fuzzer, for any length of time.
TEST_CASE("visited server: serves on whatever letters come") {
  const TemporaryFolder folder;
  Storm storm(folder.path());
  CHECK(storm.serves());
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    storm.send(random_bytes(random));
    if (seed % 100 == 0) REQUIRE(storm.serves());
  }
  CHECK(storm.serves());
}

}  // namespace plexaura::testing::storm_test
