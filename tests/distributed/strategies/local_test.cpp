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
