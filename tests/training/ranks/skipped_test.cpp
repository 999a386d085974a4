#include "training/ranks/skipped.h"

#include <doctest/doctest.h>

#include "tests/support/thread_collective.h"

namespace plexaura::testing::skipped_test {

TEST_CASE("skipped samples are counted once over all ranks, and the first is named") {
  ThreadRanks ranks(4);
  ranks.run([&](Collective& collective) {
    std::map<std::int64_t, std::string> mine;
    if (collective.rank() == 1) mine = {{5, "five"}, {19, "nineteen"}};
    if (collective.rank() == 2) mine = {{2, "two\nlines"}, {5, "five"}};
    if (collective.rank() == 3) mine = {{7, "seven"}};
    const Skipped all = gather_skipped(collective, mine, "a test");
    CHECK(all.count == 4);
    CHECK(all.first == "two\nlines");
    CHECK(gather_skipped(collective, {}, "a test").count == 0);
  });
}

}  // namespace plexaura::testing::skipped_test
