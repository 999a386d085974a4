#include "distributed/strategies/local.h"

#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include "backends/registry.h"
#include "tests/distributed/strategies/iris_run.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing {

namespace {

using Three = std::vector<double>;

// A rank whose weights the test changes in the place of a step.
class Rank {
 public:
  Rank(Collective& ranks, const LocalOptions& options)
      : backend_(open_backend("cpu")), store_(specs()), strategy_(ranks, options) {
    Placement placement{ArenaTypes::all(DType::float64), {}};
    for (const ParameterSpec& spec : specs())
      placement.append(spec.name, spec.type, spec.role, Layout::row_major(1));
    store_.place(placement, *backend_);
    border_.emplace(store_, 1 << 20);
    strategy_.begin(*border_);
  }

  void step(const StepPlace& place, double to) {
    border_->begin_step(place, false);
    for (const char* name : {"weight", "running", "frozen"})
      store_.write(name, Tensor::of<double>(Shape{2}, {to, -to}));
    strategy_.after_update();
  }
  // The first element of the weight, the buffer and the frozen parameter.
  Three values() const {
    Three values;
    for (const char* name : {"weight", "running", "frozen"}) {
      const auto both = store_.read(name).to_doubles();
      CHECK(both[0] == -both[1]);
      values.push_back(both[0]);
    }
    return values;
  }

 private:
  static std::vector<ParameterSpec> specs() {
    const TensorType type{DType::float64, {2}};
    return {{"weight", type, ParameterRole::trainable, Initialiser::zeros()},
            {"running", type, ParameterRole::buffer, Initialiser::zeros()},
            {"frozen", type, ParameterRole::frozen, Initialiser::zeros()}};
  }

  std::unique_ptr<Backend> backend_;
  ParameterStore store_;
  Local strategy_;
  std::optional<WeightsImmigration> border_;
};

// What rank 0 has behind each of some steps in which rank 0 goes to 8 and rank 1 to 16.
std::vector<Three> weights_of_two(const LocalOptions& options, const std::vector<StepPlace>& steps,
                                  std::array<std::int64_t, 2> samples = {4, 4}) {
  std::vector<Three> seen;
  ThreadRanks(2).run([&](Collective& ranks) {
    Rank rank(ranks, options);
    for (StepPlace place : steps) {
      place.samples = samples.at(static_cast<std::size_t>(ranks.rank()));
      rank.step(place, ranks.rank() == 0 ? 8 : 16);
      if (ranks.rank() == 0) seen.push_back(rank.values());
    }
  });
  return seen;
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
  const auto seen = weights_of_two({.every = 2}, {{1}, {2}, {3}, {4}});
  CHECK(seen == std::vector<Three>{{8, 8, 8}, {12, 12, 8}, {8, 8, 8}, {12, 12, 8}});
}

TEST_CASE("local: weights are averaged at the end of an epoch, and the steps counted from there") {
  const auto seen = weights_of_two({.every = 2}, {{1, 0, true}, {2, 1}, {3, 1}});
  CHECK(seen == std::vector<Three>{{12, 12, 8}, {8, 8, 8}, {12, 12, 8}});
}

TEST_CASE("local: an average weighs each rank by its samples") {
  CHECK(weights_of_two({.every = 1}, {{1}}, {3, 1})[0] == Three{10, 10, 8});
  CHECK(weights_of_two({.every = 1}, {{1}}, {0, 2})[0] == Three{16, 16, 8});
  CHECK(weights_of_two({.every = 2}, {{1}, {2}}, {0, 0})[1] == Three{0, 0, 8});
}

// With v = m v + d and the weight moving by r (d + m v): 0, then 0.5 (12 + 0.5 12) = 9, and from there d = 3 and v = 9.
TEST_CASE("local: an outer optimizer takes the average change of the weights, and not of the buffers") {
  const LocalOptions outer{.every = 1, .outer_learning_rate = 0.5, .outer_momentum = 0.5};
  CHECK(weights_of_two(outer, {{1}, {2}}) ==
        std::vector<Three>{{9, 12, 8}, {9 + 0.5 * (3 + 0.5 * 9), 12, 8}});
  CHECK(weights_of_two({.every = 1, .outer_learning_rate = 2}, {{1}})[0] == Three{24, 12, 8});
}

TEST_CASE("local: in the first epochs every step is followed by a plain average") {
  const LocalOptions options{.every = 3, .first_epochs = 1, .outer_learning_rate = 0.5};
  const auto seen = weights_of_two(options, {{1, 0}, {2, 0, true}, {3, 1}, {4, 1}, {5, 1}});
  CHECK(seen == std::vector<Three>{{12, 12, 8}, {12, 12, 8}, {8, 8, 8}, {8, 8, 8}, {12, 12, 8}});
}

// The average of weights is then that of gradients. In the last step of an epoch one rank alone has a sample.
TEST_CASE("local: averaged after every step, ranks follow one rank that trains alone") {
  const auto alone = train_iris(1, plain_sgd);
  for (const int ranks : {2, 4})
    for (const IrisEnd& end : train_iris(ranks, with(plain_sgd, {"distributed.every=1"}))) {
      CHECK(distance(end.values, alone[0].values) < 1e-12);
      CHECK(end.steps == alone[0].steps);
    }
}

TEST_CASE("local: learns the flowers as one rank does, and two runs have the same bits") {
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

}  // namespace plexaura::testing
