#include "training/loop/overfit.h"

#include <csignal>
#include <doctest/doctest.h>
#include <filesystem>
#include <utility>

#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/signalling_samples.h"
#include "tests/training/small_run.h"

namespace plexaura::testing::overfit_test {

namespace {

OverfitResult learned(SmallRun& run, const TrainerOptions& options, const OverfitGoal& goal = {}) {
  return overfit({small_model, run.store, test_backend(), points(6), points(9, 100)}, options, goal);
}

}  // namespace

TEST_CASE("a model learns some samples by heart, and the run ends then") {
  const TemporaryFolder folder;
  TrainerOptions options = momentum();
  options.output = folder / "run";
  options.save_every = 1;
  options.goal = EpochGoal{.patience = 1};
  options.learning_rate = Schedule({.peak = 0.5, .decay = Plateau{}});
  options.optimizer.ema = 0.999;
  SmallRun run;
  const OverfitResult result = learned(run, options);
  CHECK(result.is_learned);
  CHECK(result.steps < 1000);
  CHECK(result.loss <= result.first_loss / 10);
  CHECK(!std::filesystem::exists(folder / "run"));
  // The losses are those of the samples that are trained.
  TrainerOptions plain = momentum();
  Trainer trained({small_model, run.store, test_backend(), points(6), points(6)}, plain);
  CHECK(trained.validate().loss == result.loss);
  SmallRun first;
  Trainer untrained({small_model, first.store, test_backend(), points(6), points(6)}, plain);
  CHECK(untrained.validate().loss == result.first_loss);
}

TEST_CASE("a model that does not learn the samples uses all steps") {
  TrainerOptions options = momentum();
  options.learning_rate = 1e-9;
  SmallRun run;
  const OverfitResult result = learned(run, options, {.steps = 20});
  CHECK(!result.is_learned);
  CHECK(result.steps == 20);
  CHECK(result.loss > result.first_loss / 10);
  CHECK(result.dead_gradients.empty());
}

TEST_CASE("the rate is the highest of a sequence of schedules") {
  const auto loss = [](Schedule schedule) {
    TrainerOptions options = momentum();
    options.learning_rate = std::move(schedule);
    SmallRun run;
    return learned(run, options, {.steps = 5}).loss;
  };
  CHECK(loss(Schedule::sequence({1e-9, 0.5, 0.01}, {1, 2})) == loss(0.5));
}

TEST_CASE("a signal ends the run, and is reported") {
  TrainerOptions options = momentum();
  options.learning_rate = 1e-9;
  SmallRun run;
  const auto samples = std::make_shared<SignallingSamples>(points(6), 100);
  const OverfitResult result = overfit({small_model, run.store, test_backend(), samples}, options);
  CHECK(result.signal == SIGTERM);
  CHECK(result.steps < 100);
  SmallRun other;
  CHECK(learned(other, options, {.steps = 5}).signal == 0);
}

TEST_CASE("parameters without a gradient are reported") {
  SmallRun run;
  run.store.write("second", Tensor(run.store.spec("second").type));
  run.store.write("first", Tensor(run.store.spec("first").type));
  const OverfitResult result = learned(run, momentum(), {.steps = 3});
  CHECK(!result.is_learned);
  CHECK(result.dead_gradients.size() == 2);
}

TEST_CASE("goals that cannot be missed or reached are refused") {
  SmallRun run;
  for (const OverfitGoal& goal : {OverfitGoal{.share = 0}, OverfitGoal{.share = 1}, OverfitGoal{.steps = 0}})
    CHECK(user_error([&] { learned(run, momentum(), goal); }).starts_with("samples are to be learned in "));
}

}  // namespace plexaura::testing::overfit_test
