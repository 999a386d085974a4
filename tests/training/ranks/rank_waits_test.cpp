#include "training/ranks/rank_waits.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

namespace plexaura::testing::rank_waits_test {

namespace {

// Returns the waits of ranks 1, 2, ... in an epoch of 10 s.
RankWaits waits(const std::vector<double>& seconds, double epoch_seconds = 10) {
  RankWaits made{.epoch_seconds = epoch_seconds};
  for (const double own : seconds) made.ranks.push_back({static_cast<int>(made.ranks.size()) + 1, own});
  return made;
}

// Rank 0 of two ranks; the other rank has waited longer.
class Pair final : public Collective {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void sum(DType, std::byte*, std::int64_t, std::string_view) override {}
  void broadcast(std::byte*, std::size_t, int, std::string_view) override {}
  std::vector<std::string> gather_all(const std::string& mine, std::string_view) override {
    return {mine, "7 1.5"};
  }
};

}  // namespace

TEST_CASE("rank waits: their share is that of the time of all ranks") {
  CHECK(waits({1, 2, 3, 2}).share() == doctest::Approx(0.2));
  CHECK(waits({11, 11}).share() == 1);
  CHECK(waits({0, 0}, 0).share() == 0);
}

TEST_CASE("rank waits: the straggler is who waits least, if the others wait much longer") {
  const RankWaits::Straggler found = waits({6, 5, 1, 8}).straggler().value();
  CHECK(found.number == 3);
  CHECK(found.seconds == doctest::Approx(5));
  CHECK(waits({6, 1}).straggler().value().number == 2);
  CHECK_FALSE(waits({1.4, 1, 1.4}).straggler());         // the difference is below 5 %
  CHECK_FALSE(waits({0.09, 0, 0.09}, 0.2).straggler());  // the difference is below 0.1 s
  CHECK_FALSE(waits({1, 1.01, 1.02, 9}).straggler());    // a fast rank is no straggler
  CHECK_FALSE(waits({5}).straggler());
}

TEST_CASE("rank waits: nobody is the straggler of ranks that make steps without each other") {
  RankWaits apart = waits({6, 1});  // waits for a server
  apart.meet_in_steps = false;
  CHECK_FALSE(apart.straggler());
  CHECK(apart.share() == doctest::Approx(0.35));
}

TEST_CASE("rank waits: ranks tell each other under the names that people know") {
  Pair ranks;
  const RankWaits found = gather_waits(ranks, {3, 0.25}, 2);
  REQUIRE(found.ranks.size() == 2);
  CHECK(found.epoch_seconds == 2);
  CHECK(found.ranks[0].number == 3);
  CHECK(found.ranks[0].seconds == 0.25);
  CHECK(found.ranks[1].number == 7);
  CHECK(found.straggler().value().number == 3);
}

}  // namespace plexaura::testing::rank_waits_test
