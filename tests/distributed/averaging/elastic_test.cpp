#include "distributed/averaging/elastic.h"

#include <array>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>

#include "tests/distributed/strategies/iris_run.h"
#include "tests/distributed/strategies/moved_ranks.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::elastic_test {

namespace {

const ElasticOptions half{.every = 1, .elasticity = 0.5};

std::vector<Numbers> behind(const ElasticOptions& options, const std::vector<StepPlace>& steps, int rank,
                            const std::vector<std::int64_t>& samples = {4, 4}) {
  return values_behind([&](Collective& ranks) { return std::make_unique<Elastic>(ranks, options); }, steps,
                       samples, rank);
}

const Settings settings{"distributed.strategy=elastic", "distributed.every=5", "distributed.elasticity=0.8"};

}  // namespace

// The centre moves from 0 to 6 and to 9, half of the way to the mean of 12. Each rank moves a quarter of its
// way to the centre.
TEST_CASE("elastic: ranks and centre pull at each other, and buffers are averaged") {
  CHECK(behind(half, {{1}, {2}}, 0) == std::vector<Numbers>{{6, 12, 8}, {7.5, 12, 8}});
  CHECK(behind(half, {{1}, {2}}, 1) == std::vector<Numbers>{{12, 12, 16}, {13.5, 12, 16}});
}

namespace {

// Sends half of what one rank brings.
class Half final : public Compression {
 public:
  void exchange(std::size_t, std::span<float> owed, std::span<float> sums, std::string_view) override {
    for (std::size_t i = 0; i < owed.size(); ++i) sums[i] = owed[i] /= 2;
  }
  std::vector<Crossing> crossings(std::size_t, std::int64_t, int) const override { return {}; }
};

}  // namespace

// A rank stays at 8, so its distance from the centre includes what was not sent. If that were also owed, the
// centre would move to 10.
TEST_CASE("elastic: what a compression leaves of a way is not gone twice") {
  SingleProcess alone;
  Elastic strategy(alone, {.every = 1, .elasticity = 1}, false, std::make_unique<Half>());
  MovedRank rank(strategy, DType::float32);
  Numbers centre;
  for (std::int64_t step = 1; step <= 3; ++step) {
    rank.step({.number = step, .samples = 4}, 8);
    strategy.show_weights();
    centre.push_back(rank.values()[0]);
    strategy.take_weights_back();
  }
  CHECK(centre == Numbers{4, 6, 7});
}

TEST_CASE("elastic: ranks exchange every few steps and at the end of an epoch") {
  const ElasticOptions rare{.every = 2, .elasticity = 0.5};
  CHECK(behind(rare, {{1}, {2}}, 0) == std::vector<Numbers>{{8, 8, 8}, {6, 12, 8}});
  CHECK(behind(rare, {{1, 0, true}, {2, 1}}, 0) == std::vector<Numbers>{{6, 12, 8}, {8, 8, 8}});
}

TEST_CASE("elastic: the centre is shown, and goes to a mean that weighs each rank by its samples") {
  std::array<std::vector<Numbers>, 2> seen;
  ThreadRanks(2).run([&](Collective& ranks) {
    Elastic strategy(ranks, half);
    MovedRank rank(strategy);
    const bool first = ranks.rank() == 0;
    rank.step({.number = 1, .samples = first ? 3 : 1}, first ? 8 : 16);
    std::vector<Numbers>& mine = seen.at(static_cast<std::size_t>(ranks.rank()));
    strategy.show_weights();
    mine.push_back(rank.values());
    strategy.take_weights_back();
    mine.push_back(rank.values());
  });
  CHECK(seen[0] == std::vector<Numbers>{{5, 10, 8}, {6, 10, 8}});
  CHECK(seen[1] == std::vector<Numbers>{{5, 10, 16}, {12, 10, 16}});
}

// The centre moves from 0 to 6, half of the way to 12. If the lost rank still took part, it moves to 8, half
// of the way to 16. Rank 0 moves a quarter of its way to the centre in a group of two, and a sixth in a group
// of three. In the next exchange the centre moves to 9 or to 10.
TEST_CASE("elastic: where a rank is lost in an exchange, either all others take that or none has") {
  const MakeStrategy make = [](Collective& ranks) { return std::make_unique<Elastic>(ranks, half, true); };
  const LossOfLast sum{.steps = {{1}}, .call = "the weights after step 1", .behind = {{2}}};
  LossOfLast telling = sum;
  telling.call = "which ranks have the mean of the weights after step 1";
  LossOfLast passed = telling;
  passed.one_has_passed = true;
  for (const LossOfLast& loss : {sum, telling}) {
    CHECK(values_without_last(make, loss)[0] == std::vector<Numbers>{{6, 12, 8}, {7.5, 12, 8}});
    CHECK(values_without_last(make, loss)[1] == std::vector<Numbers>{{12, 12, 16}, {13.5, 12, 16}});
  }
  const auto seen = values_without_last(make, passed);
  CHECK(seen[0][0][0] == doctest::Approx(8 - 8.0 / 6));
  CHECK(seen[0][1] == Numbers{8, 12, 8});  // with the centre at 8
  CHECK(seen[1] == std::vector<Numbers>{{12, 16, 16}, {14, 12, 16}});
}

TEST_CASE("elastic: those that are left keep their own weights and the centre, also while that is shown") {
  const MakeStrategy make = [](Collective& ranks) { return std::make_unique<Elastic>(ranks, half, true); };
  LossOfLast loss{.steps = {{1}}, .behind = {{2}}};
  const double own = 16 - 16.0 / 6;
  for (const bool shown : {false, true}) {
    loss.shown = shown;
    const auto seen = values_without_last(make, loss)[1];
    CHECK(seen[0][0] == doctest::Approx(own));
    CHECK(seen[1] == Numbers{14, 12, 16});  // with the centre at 8
  }
}

TEST_CASE("elastic: learns the flowers as one rank does, and two runs have the same bits" *
          doctest::skip(sanitized)) {
  for (const int ranks : {2, 4}) check_learns(ranks, settings);
}

// Step 18 is within an epoch and between two exchanges. Step 30 ends an epoch.
TEST_CASE("elastic: a resumed run ends as one that was never stopped") {
  const TemporaryFolder folder;
  const Settings brief = with(settings, {"training.epochs=4"});
  const Settings saving = with(brief, {"output.dir=" + folder.path().string()});
  for (const std::int64_t stop : {18, 30}) {
    check_resumes(3, brief, stop);
    const auto stopped = train_iris(3, saving, stop);
    CHECK(stopped[1].weights == stopped[0].weights);
    CHECK(train_iris(3, saving, stop, true)[1].weights == stopped[1].weights);
  }
}

}  // namespace plexaura::testing::elastic_test
