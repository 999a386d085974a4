#include "distributed/server/part_deal.h"

#include <doctest/doctest.h>
#include <utility>
#include <vector>

namespace plexaura::testing::part_deal_test {

namespace {

// Steps and parts, until nothing is left; behind them the step at which the deal has ended.
using Parts = std::vector<std::pair<std::int64_t, std::int64_t>>;

Parts rest_of(PartDeal& deal, std::int64_t first, std::int64_t end) {
  Parts parts;
  for (Draw drawn = deal.draw(first, end);; drawn = deal.draw(first, end)) {
    parts.emplace_back(drawn.step_in_epoch, drawn.part.value_or(-1));
    if (!drawn.part) return parts;
  }
}

}  // namespace

TEST_CASE("part deal: each part of each step once, in order, until all know the end") {
  PartDeal deal(2);
  CHECK(rest_of(deal, 1, 3) == Parts{{1, 0}, {1, 1}, {2, 0}, {2, 1}, {3, -1}});
  CHECK(rest_of(deal, 1, 3) == Parts{{3, -1}});
  deal.close();
  CHECK(rest_of(deal, 0, 1) == Parts{{0, 0}, {0, 1}, {1, -1}});
}

TEST_CASE("part deal: it stops at the end of a step") {
  PartDeal deal(3);
  deal.draw(0, 9);
  deal.stop();
  deal.stop();
  CHECK(rest_of(deal, 0, 9) == Parts{{0, 1}, {0, 2}, {1, -1}});
  deal.close();
  for (int i = 0; i < 3; ++i) deal.draw(1, 9);
  deal.stop();
  CHECK(rest_of(deal, 1, 9) == Parts{{2, -1}});
}

TEST_CASE("part deal: a deal that is stopped before it opens has no parts, and the next one has") {
  PartDeal deal(2);
  deal.stop();
  CHECK(rest_of(deal, 4, 9) == Parts{{4, -1}});
  deal.close();
  CHECK(rest_of(deal, 4, 5) == Parts{{4, 0}, {4, 1}, {5, -1}});
}

}  // namespace plexaura::testing::part_deal_test
