// A strategy of local scope gets mean gradients over this rank's own samples. The ranks still agree on loss,
// counts and failures, although the strategy does not sum the tail.

#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <mutex>

#include "core/ops/binary.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/contracts/ranks/rows_run.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/broken_samples.h"
#include "tests/support/forwarding_collective.h"
#include "tests/support/thread_collective.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::gradient_scope_test {

namespace {

const TensorType type{DType::float32, {6, 2}};

LossOutputs squares(Graph& graph, const Node& x, const Node& t) {
  const Node seen = graph.buffer("seen", {DType::float32, {2}});
  const Node y = tanh(matmul(x, graph.parameter("w", type)));
  graph.update(seen, seen * 0.5 + mean(y, {.axes = {0}}));
  return {squared_error(y, t)};
}

// Every rank trains for itself.
class Alone final : public Strategy, public WeightExchange {
 public:
  explicit Alone(bool is_exchanging = false) : is_exchanging_(is_exchanging) {}
  StrategyParts parts() override { return {.weights = this, .scope = GradientScope::local}; }
  bool is_exchanging() const override { return is_exchanging_; }

 private:
  bool is_exchanging_;
};

// Records the sums of losses that the trainer makes.
class NotedSums final : public ForwardingCollective {
 public:
  using ForwardingCollective::ForwardingCollective;
  std::vector<std::string> losses;

 private:
  bool makes(std::string_view what) override {
    if (what.starts_with("the loss of step")) losses.emplace_back(what);
    return true;
  }
};

class Losses final : public TrainingObserver {
 public:
  void step(const StepRecord& record, std::int64_t) override { all.push_back(record.loss); }
  std::vector<double> all;
};

}  // namespace

TEST_CASE("gradients of local scope are means over the samples of this rank") {
  const Batch batch{whole_numbers({DType::float32, {4, 6}}, 1), whole_numbers({DType::float32, {4, 2}}, 2)};
  const std::vector<ParameterSpec> specs{
      {"w", type, ParameterRole::trainable, Initialiser::uniform(0.5)},
      {"seen", {DType::float32, {2}}, ParameterRole::buffer, Initialiser::zeros()}};
  Alone alone;
  SmallTraining local(test_backend(), specs, squares, batch,
                      {.strategy = &alone, .sizes = {1, 3}, .micro_batches = true});
  SmallTraining plain(test_backend(), specs, squares, batch, {.sizes = {1, 3}, .micro_batches = true});
  const std::vector<Batch> parts{part(batch, 0, 3), part(batch, 3, 1)};
  for (int i = 0; i < 2; ++i) {
    local.launch(parts, 0.1, 100);  // other ranks have the other samples
    plain.launch(parts, 0.1);
  }
  check_same_values(local.store(), plain.store());
}

TEST_CASE("ranks that sum no gradients agree on the loss") {
  std::array<Losses, 3> seen;
  std::array<Tensor, 3> weights;
  ThreadRanks(3).run([&](Collective& ranks) {
    RowsRun run;
    Alone strategy;
    Trainer trainer(run.parts(20, ranks, &strategy), {.batch_size = 8, .epochs = 2, .learning_rate = 0.5});
    const auto rank = static_cast<std::size_t>(ranks.rank());
    CHECK(trainer.run(seen[rank]).steps == 6);
    weights[rank] = run.store.read("weight");
  });
  CHECK(seen[0].all.size() == 6);
  CHECK(seen[0].all == seen[1].all);
  CHECK(seen[0].all == seen[2].all);
  CHECK_FALSE(weights[0] == weights[1]);
}

TEST_CASE("a strategy knows the place of a step, and how many samples of it are this rank's") {
  struct Noting final : Strategy, WeightExchange {
    StrategyParts parts() override { return {.weights = this, .scope = GradientScope::local}; }
    void begin(WeightsImmigration& border) override {
      engine = &border;
      CHECK(border.place().number == 0);
    }
    void after_update() override {
      const StepPlace& place = engine->place();
      CHECK(place.number == engine->step());
      seen +=
          fmt::format("{}:{}{}:{} ", place.number, place.epoch, place.ends_epoch ? "!" : "", place.samples);
    }
    WeightsImmigration* engine = nullptr;
    std::string seen;
  };
  std::array<std::string, 3> seen;
  ThreadRanks(3).run([&](Collective& ranks) {
    RowsRun run;
    Noting strategy;
    Trainer trainer(run.parts(10, ranks, &strategy), {.batch_size = 8, .micro_batches = 2, .epochs = 2});
    trainer.run();
    seen.at(static_cast<std::size_t>(ranks.rank())) = strategy.seen;
  });
  CHECK(seen[0] == "1:0:3 2:0!:1 3:1:3 4:1!:1 ");
  CHECK(seen[1] == seen[0]);
  CHECK(seen[2] == "1:0:2 2:0!:0 3:1:2 4:1!:0 ");
}

TEST_CASE("of ranks that sum no gradients the losses of several steps are summed at once") {
  const auto sums = [](bool is_exchanging) {
    std::array<std::vector<std::string>, 2> made;
    ThreadRanks(2).run([&](Collective& ranks) {
      NotedSums noted(ranks);
      RowsRun run;
      Alone strategy(is_exchanging);
      Losses losses;
      Trainer trainer(run.parts(24, noted, &strategy), {.batch_size = 8, .epochs = 2, .steps = 5});
      trainer.run(losses);
      CHECK(losses.all.size() == 5);
      made.at(static_cast<std::size_t>(ranks.rank())) = noted.losses;
    });
    CHECK(made[0] == made[1]);
    return made[0];
  };
  // The interval of reports depends on the duration of a step, which is known after the first step.
  CHECK(sums(false) ==
        std::vector<std::string>{"the loss of step 1", "the loss of step 3", "the loss of step 5"});
  CHECK(sums(true) == std::vector<std::string>{"the loss of step 3", "the loss of step 5"});
}

TEST_CASE("ranks that sum no gradients stop behind the same step") {
  std::array<std::int64_t, 2> steps{};
  std::array<std::size_t, 2> seen{};
  ThreadRanks(2).run([&](Collective& ranks) {
    struct Stopping final : Strategy, WeightExchange {
      StrategyParts parts() override { return {.weights = this, .scope = GradientScope::local}; }
      void begin(WeightsImmigration& border) override { engine = &border; }
      void after_update() override {
        if (engine->step() == 4) end_early();
      }
      WeightsImmigration* engine = nullptr;
      std::function<void()> end_early;
    };
    RowsRun run;
    Stopping strategy;
    Losses losses;
    Trainer trainer(run.parts(8 * 5000, ranks, &strategy), {.batch_size = 8});
    strategy.end_early = [&] {
      if (ranks.rank() == 1) trainer.end_early();
    };
    const auto rank = static_cast<std::size_t>(ranks.rank());
    steps.at(rank) = trainer.run(losses).steps;
    seen.at(rank) = losses.all.size();
  });
  CHECK(steps[0] > 4);
  CHECK(steps[0] < 5000);
  CHECK(steps[1] == steps[0]);
  CHECK(static_cast<std::int64_t>(seen[0]) == steps[0]);
}

TEST_CASE("a rank that fails where no gradients are summed takes the others with it") {
  int heard = 0;
  std::string said;
  std::mutex mutex;
  ThreadRanks(2).run([&](Collective& ranks) {
    RowsRun run;
    Alone strategy;
    Trainer trainer(run.parts(with_broken(std::make_shared<const CountingRows>(20), {13}), ranks, &strategy),
                    {.batch_size = 8, .shuffle = false, .workers = 0});
    try {
      trainer.run();
    } catch (const UserError& error) {
      const std::lock_guard lock(mutex);
      if (speaks(error)) said = error.what();
      ++heard;
    }
  });
  CHECK(said == "sample 13 cannot be read");
  CHECK(heard == 2);
}

}  // namespace plexaura::testing::gradient_scope_test
