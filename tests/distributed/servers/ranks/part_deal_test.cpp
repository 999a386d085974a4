#include "distributed/servers/ranks/part_deal.h"

#include <doctest/doctest.h>
#include <sstream>
#include <utility>
#include <vector>

namespace plexaura::testing::part_deal_test {

namespace {

// Pairs of step and part until nothing is left. The last pair has the step at which the deal has ended.
using Parts = std::vector<std::pair<std::int64_t, std::int64_t>>;

Parts rest_of(PartDeal& deal, int client = 0) {
  Parts parts;
  for (Draw drawn = deal.draw(client);; drawn = deal.draw(client)) {
    parts.emplace_back(drawn.step_in_epoch, drawn.part.value_or(-1));
    if (!drawn.part) return parts;
  }
}

}  // namespace

TEST_CASE("part deal: each part of each step once, in order, until all know the end") {
  PartDeal deal(2);
  CHECK_FALSE(deal.is_open());
  deal.open({1, 3, 2, 2, 0});
  CHECK(deal.is_open());
  CHECK(rest_of(deal) == Parts{{1, 0}, {1, 1}, {2, 0}, {2, 1}, {3, -1}});
  CHECK(rest_of(deal, 1) == Parts{{3, -1}});
  deal.close();
  CHECK_FALSE(deal.is_open());
  deal.open({0, 1, 2, 2, 1});
  CHECK(rest_of(deal) == Parts{{0, 0}, {0, 1}, {1, -1}});
}

TEST_CASE("part deal: the last step may have fewer parts") {
  PartDeal deal(2);
  deal.open({0, 2, 3, 1, 0});
  CHECK(rest_of(deal) == Parts{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {2, -1}});
  deal.close();
  deal.open({0, 2, 3, 1, 1});
  for (int i = 0; i < 4; ++i) deal.draw(0);
  deal.stop();
  CHECK(rest_of(deal) == Parts{{2, -1}});
}

TEST_CASE("part deal: no step is left") {
  PartDeal deal(2);
  deal.open({3, 3, 2, 2, 0});
  CHECK(rest_of(deal) == Parts{{3, -1}});
}

TEST_CASE("part deal: it stops at the end of a step") {
  PartDeal deal(3);
  deal.open({0, 9, 3, 3, 0});
  deal.draw(0);
  deal.stop();
  deal.stop();
  CHECK(rest_of(deal) == Parts{{0, 1}, {0, 2}, {1, -1}});
  deal.close();
  deal.open({1, 9, 3, 3, 1});
  for (int i = 0; i < 3; ++i) deal.draw(0);
  deal.stop();
  CHECK(rest_of(deal) == Parts{{2, -1}});
}

TEST_CASE("part deal: a deal that is stopped before it opens has no parts, and the next one has") {
  PartDeal deal(2);
  deal.stop();
  deal.open({4, 9, 2, 2, 0});
  CHECK(rest_of(deal) == Parts{{4, -1}});
  deal.close();
  deal.open({4, 5, 2, 2, 1});
  CHECK(rest_of(deal) == Parts{{4, 0}, {4, 1}, {5, -1}});
}

TEST_CASE("part deal: what a client has drawn and not finished is dealt again, before anything else") {
  PartDeal deal(2);
  deal.open({0, 3, 2, 2, 0});
  for (const int client : {0, 1, 0, 0}) deal.draw(client);  // the first client has parts 0, 2 and 3
  deal.finish(0, 1);
  CHECK_FALSE(deal.has_returned());
  CHECK(deal.take_back(0) == 2);
  CHECK(deal.has_returned());
  CHECK(deal.take_back(0) == 0);
  CHECK(rest_of(deal, 1) == Parts{{1, 0}, {1, 1}, {2, 0}, {2, 1}, {3, -1}});
  CHECK_FALSE(deal.has_returned());
  deal.finish(1, 2);
  CHECK(deal.take_back(1) == 3);
}

TEST_CASE("part deal: of a deal that has come to its end, or is stopped, it is dealt again, too") {
  PartDeal deal(2);
  deal.open({0, 9, 2, 2, 0});
  deal.draw(0);
  deal.draw(0);
  deal.stop();
  CHECK(rest_of(deal, 1) == Parts{{1, -1}});
  deal.take_back(0);
  CHECK(rest_of(deal, 1) == Parts{{0, 0}, {0, 1}, {1, -1}});
  deal.finish_all(1);
  CHECK(deal.take_back(1) == 0);
}

namespace {

// Returns a copy of the deal for another server with two clients.
PartDeal handed_on(const PartDeal& former) {
  std::istringstream packed(former.pack() + "and more");
  PartDeal deal(2);
  deal.unpack(packed);
  return deal;
}

}  // namespace

TEST_CASE("part deal: another server deals what is not finished, and goes on where the deal stood") {
  PartDeal former(3);
  former.open({1, 4, 2, 2, 0});
  for (const int client : {0, 1, 2, 1, 0}) former.draw(client);  // draws parts 2 to 6
  former.finish(1, 1);
  former.take_back(2);
  former.draw(1);  // draws part 4 again
  PartDeal deal = handed_on(handed_on(former));
  CHECK_FALSE(deal.is_open());
  deal.open({1, 4, 2, 2, 0});
  CHECK(rest_of(deal) == Parts{{1, 0}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {4, -1}});
  deal.finish_all(0);
  deal.close();
  PartDeal next = handed_on(deal);
  next.open({0, 1, 2, 2, 1});
  CHECK(rest_of(next) == Parts{{0, 0}, {0, 1}, {1, -1}});
  PartDeal again = handed_on(deal);  // no other process knows yet that this deal is closed
  again.open({1, 4, 2, 2, 0});
  CHECK(rest_of(again) == Parts{{4, -1}});
}

TEST_CASE("part deal: another server, too, stops at the end of a step") {
  PartDeal former(3);
  former.open({0, 4, 2, 2, 0});
  for (const int client : {0, 1, 0}) former.draw(client);
  former.finish_all(0);
  PartDeal deal = handed_on(former);
  deal.stop();
  deal.open({0, 4, 2, 2, 0});
  CHECK(rest_of(deal) == Parts{{0, 1}, {1, 1}, {2, -1}});
}

}  // namespace plexaura::testing::part_deal_test
