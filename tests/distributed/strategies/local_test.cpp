#include "distributed/strategies/local.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <string>

#include "tests/distributed/strategies/iris_run.h"
#include "tests/distributed/strategies/moved_ranks.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::local_test {

namespace {

std::vector<Numbers> behind(const LocalOptions& options, const std::vector<StepPlace>& steps,
                            const std::vector<std::int64_t>& samples = {4, 4}) {
  return values_behind([&](Collective& ranks) { return std::make_unique<Local>(ranks, options); }, steps,
                       samples);
}

const std::vector<std::string> plain_sgd{"distributed.strategy=local", "training.epochs=8",
                                         "training.precision=float64", "training.batch_size=7",
                                         "training.optimizer.momentum=0"};

std::vector<std::string> with(std::vector<std::string> settings, const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

}  // namespace

TEST_CASE("local: weights and buffers are averaged every few steps, frozen parameters never") {
  const auto seen = behind({.every = 2}, {{1}, {2}, {3}, {4}});
  CHECK(seen == std::vector<Numbers>{{8, 8, 8}, {12, 12, 8}, {8, 8, 8}, {12, 12, 8}});
}

TEST_CASE("local: weights are averaged at the end of an epoch, and the steps counted from there") {
  const auto seen = behind({.every = 2}, {{1, 0, true}, {2, 1}, {3, 1}});
  CHECK(seen == std::vector<Numbers>{{12, 12, 8}, {8, 8, 8}, {12, 12, 8}});
}

TEST_CASE("local: an average weighs each rank by its samples") {
  CHECK(behind({.every = 1}, {{1}}, {3, 1})[0] == Numbers{10, 10, 8});
  CHECK(behind({.every = 1}, {{1}}, {0, 2})[0] == Numbers{16, 16, 8});
  CHECK(behind({.every = 2}, {{1}, {2}}, {0, 0})[1] == Numbers{0, 0, 8});
}

// With v = m v + d and the weight moving by r (d + m v): 0, then 0.5 (12 + 0.5 12) = 9, and from there d = 3 and v = 9.
TEST_CASE("local: an outer optimizer takes the average change of the weights, and not of the buffers") {
  const LocalOptions outer{.every = 1, .outer_learning_rate = 0.5, .outer_momentum = 0.5};
  CHECK(behind(outer, {{1}, {2}}) == std::vector<Numbers>{{9, 12, 8}, {9 + 0.5 * (3 + 0.5 * 9), 12, 8}});
  CHECK(behind({.every = 1, .outer_learning_rate = 2}, {{1}})[0] == Numbers{24, 12, 8});
}

TEST_CASE("local: in the first epochs every step is followed by a plain average") {
  const LocalOptions options{.every = 3, .first_epochs = 1, .outer_learning_rate = 0.5};
  const auto seen = behind(options, {{1, 0}, {2, 0, true}, {3, 1}, {4, 1}, {5, 1}});
  CHECK(seen == std::vector<Numbers>{{12, 12, 8}, {12, 12, 8}, {8, 8, 8}, {8, 8, 8}, {12, 12, 8}});
}

TEST_CASE("local: where a rank is lost in an average, either all others take that or none has") {
  const MakeStrategy make = [](Collective& ranks) {
    return std::make_unique<Local>(ranks, LocalOptions{.every = 2}, true);
  };
  const LossOfLast sum{.steps = {{1}, {2}}, .call = "the weights after step 2", .behind = {{3}, {4}}};
  LossOfLast telling = sum;
  telling.call = "who has the mean of the weights after step 2";
  LossOfLast passed = telling;
  passed.one_has_passed = true;
  for (const std::size_t rank : {0, 1}) {
    const double own = rank == 0 ? 8 : 16;
    const std::vector<Numbers> of_two{{12, 12, own}, {own, own, own}, {12, 12, own}};
    CHECK(values_without_last(make, sum).at(rank) == of_two);
    CHECK(values_without_last(make, telling).at(rank) == of_two);
    CHECK(values_without_last(make, passed).at(rank) ==
          std::vector<Numbers>{{16, 16, own}, {own, own, own}, {12, 12, own}});
  }
}

// Behind step 3 they count one step; the rank that has not made it averages with the other.
TEST_CASE("local: those that are left average when the rank that is ahead would") {
  const MakeStrategy make = [](Collective& ranks) {
    return std::make_unique<Local>(ranks, LocalOptions{.every = 2}, true);
  };
  const LossOfLast ahead{.steps = {{1}, {2}}, .ahead = {{3}}, .behind = {{4}}};
  CHECK(values_without_last(make, ahead)[0] ==
        std::vector<Numbers>{{8, 8, 8}, {16 - 16.0 / 3, 16 - 16.0 / 3, 8}});
  CHECK(values_without_last(make, ahead)[1] ==
        std::vector<Numbers>{{16, 16, 16}, {16 - 16.0 / 3, 16 - 16.0 / 3, 16}});
  LossOfLast ends_epoch{.steps = {{1}, {2}, {3}}, .behind = {{4}}};
  ends_epoch.steps[2].ends_epoch = true;
  ends_epoch.call = "the weights after step 3";
  CHECK(values_without_last(make, ends_epoch)[1] == std::vector<Numbers>{{12, 12, 16}, {16, 16, 16}});
}

// The first average of three goes 8 from 0 and leaves a velocity of 16. With m = 0.5 it goes 16 + 8 = 24; the next one, of two, 12 - 24 = -12,
// with a velocity of -12 + 8.
TEST_CASE("local: those that are left keep the anchor and the velocity of the outer optimizer") {
  const MakeStrategy make = [](Collective& ranks) {
    return std::make_unique<Local>(ranks, LocalOptions{.every = 1, .outer_momentum = 0.5}, true);
  };
  const LossOfLast loss{.steps = {{1}}, .behind = {{2}}};
  CHECK(values_without_last(make, loss)[0] ==
        std::vector<Numbers>{{24, 16, 8}, {24 - 12 + 0.5 * (-12 + 0.5 * 16), 12, 8}});
  const MakeStrategy rare = [](Collective& ranks) {
    return std::make_unique<Local>(ranks, LocalOptions{.every = 3, .outer_learning_rate = 0.5}, true);
  };
  const LossOfLast within{.steps = {{1}, {2}}, .behind = {{3}}};
  CHECK(values_without_last(rare, within)[1] == std::vector<Numbers>{{16, 16, 16}, {6, 12, 16}});
}

// The average of weights is then that of gradients, also where these are sums over micro-batches. In the last step of an epoch one rank alone has a sample.
TEST_CASE("local: averaged after every step, ranks follow one rank that trains alone") {
  const auto alone = train_iris(1, plain_sgd);
  for (const int ranks : {2, 4})
    for (const IrisEnd& end : train_iris(
             ranks, with(plain_sgd, {"distributed.every=1", ranks == 2 ? "training.micro_batches=2"
                                                                       : "training.micro_batches=1"}))) {
      CHECK(distance(end.values, alone[0].values) < 1e-12);
      CHECK(end.steps == alone[0].steps);
    }
}

TEST_CASE("local: learns the flowers as one rank does, and two runs have the same bits" *
          doctest::skip(sanitized)) {
  const double alone = train_iris(1, {})[0].accuracy;
  const std::vector<std::string> outer{"distributed.strategy=local", "distributed.every=5",
                                       "distributed.first_epochs=2",
                                       "distributed.outer={learning_rate: 0.7, momentum: 0.3}"};
  for (const int ranks : {2, 4})
    for (const auto& settings : {std::vector<std::string>{"distributed.strategy=local"}, outer}) {
      const auto ends = train_iris(ranks, settings);
      const auto again = train_iris(ranks, settings);
      for (std::size_t rank = 0; rank < ends.size(); ++rank) {
        CHECK(ends[rank].weights == ends[0].weights);
        CHECK(again[rank].weights == ends[0].weights);
      }
      CHECK(ends[0].accuracy >= alone - 0.04);  // one flower of 30
    }
}

// Step 20 is within an epoch and between two averages. Each rank has a momentum of its own.
TEST_CASE("local: a resumed run ends as one that was never stopped") {
  const TemporaryFolder folder;
  const std::vector<std::string> settings{"distributed.strategy=local", "distributed.every=6",
                                          "distributed.outer.momentum=0.5", "training.epochs=4",
                                          "output.dir=" + (folder / "run").string()};
  for (const std::int64_t stop : {20, 30}) {
    const auto whole = train_iris(3, with(settings, {"output.dir="}));
    const auto stopped = train_iris(3, settings, stop);
    CHECK((stopped[1].weights == stopped[0].weights) == (stop == 30));  // the end of the second epoch
    CHECK(train_iris(3, settings, stop, true)[1].weights == stopped[1].weights);
    const auto resumed = train_iris(3, settings, {}, true);
    for (std::size_t rank = 0; rank < 3; ++rank) CHECK(resumed[rank].weights == whole[rank].weights);
    std::filesystem::remove_all(folder / "run");
  }
}

}  // namespace plexaura::testing::local_test
