#include "training/loop/epochs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "tests/training/scarce_staging.h"
#include "tests/training/small_run.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/checkpoints/weights.h"

namespace plexaura::testing::epochs_test {

namespace fs = std::filesystem;

namespace {

// The small model, which also reports a number that is computed of sums over the validation samples. Counts how often this
// number is computed, and of how many samples; NaN samples stand for no validation.
struct Counted {
  int calls = 0;
  int without_samples = 0;

  LossOutputs operator()(const ModelInputs& inputs) {
    LossOutputs outputs = small_model(inputs);
    outputs.validation = {.sums = reshape(sum(inputs["samples"]), {1}),
                          .values = [this](std::span<const double> totals, double samples) {
                            ++calls;
                            if (std::isnan(samples)) ++without_samples;
                            return std::vector<std::pair<std::string, double>>{{"mean", totals[0] / samples}};
                          }};
    return outputs;
  }

  std::vector<EpochRecord> train(std::shared_ptr<const SampleSource> validation) {
    ParameterStore store = small_store();
    Recorder seen;
    Trainer({.model = [this](const ModelInputs& inputs) { return (*this)(inputs); },
             .store = store,
             .backend = test_backend(),
             .train = points(30),
             .validation = std::move(validation)},
            momentum())
        .run(seen);
    return seen.epochs;
  }
};

// A run whose validation loss rises and falls, because its learning rate is too large.
TrainerOptions comparing(std::optional<std::int64_t> patience) {
  TrainerOptions options = momentum();
  options.epochs = 12;
  options.learning_rate = 0.7;
  options.goal = EpochGoal{.patience = patience};
  return options;
}

std::vector<double> losses_of(const SmallRun& run) {
  std::vector<double> losses;
  for (const EpochRecord& epoch : run.seen.epochs) losses.push_back(epoch.val_loss);
  return losses;
}

// Returns the epoch with the smallest loss.
std::int64_t best_of(const std::vector<double>& losses) {
  return std::ranges::min_element(losses) - losses.begin();
}

}  // namespace

TEST_CASE("numbers of a validation are computed once in each epoch, and not of NaN") {
  Counted counted;
  const std::vector<EpochRecord> epochs = counted.train(points(9, 100));
  REQUIRE(epochs.size() == 3);
  CHECK(counted.calls == 3);
  CHECK(counted.without_samples == 0);
  for (const EpochRecord& epoch : epochs) CHECK(std::isfinite(value_of("mean", epoch.val_metrics)));
}

TEST_CASE("an epoch without validation reports the metrics of validation as NaN") {
  Counted counted;
  const std::vector<EpochRecord> epochs = counted.train(nullptr);
  REQUIRE(epochs.size() == 3);
  CHECK(counted.without_samples == 3);
  for (const EpochRecord& epoch : epochs)
    for (const char* name : {"accuracy", "mean"}) CHECK(std::isnan(value_of(name, epoch.val_metrics)));
}

TEST_CASE("a run reports its best epoch, keeps the checkpoint, and lets a link lead to it") {
  const TemporaryFolder folder;
  TrainerOptions options = comparing(std::nullopt);
  options.output = folder / "run";
  SmallRun run;
  run.train(options, points(30), points(9, 100));
  const std::vector<double> losses = losses_of(run);
  const std::int64_t best = best_of(losses);
  REQUIRE(best < 11);  // otherwise the newest checkpoint is the best one
  CHECK(run.result.best.epoch == best);
  CHECK(run.result.best.step == 4 * (best + 1));
  CHECK(run.result.best.value == losses[static_cast<std::size_t>(best)]);
  CHECK(!run.result.is_exhausted);
  CHECK(fs::read_symlink(folder / "run/best") == checkpoint_folder("", 4 * (best + 1)));
  CHECK(newest_step(folder / "run") == 48);
  // The weights that the link leads to are those of that epoch.
  SmallRun shorter;
  options.output.clear();
  options.epochs = best + 1;
  shorter.train(options, points(30), points(9, 100));
  SmallRun loaded;
  load_weights(folder / "run/best/weights.safetensors", loaded.store);
  CHECK(weights(loaded.store) == weights(shorter.store));
}

TEST_CASE("a run ends when its patience is used up, also after it was stopped and resumed") {
  SmallRun whole;
  whole.train(comparing(2), points(30), points(9, 100));
  const std::vector<double> losses = losses_of(whole);
  REQUIRE(losses.size() < 12);
  CHECK(best_of(losses) == std::ssize(losses) - 3);
  CHECK(whole.result.is_exhausted);
  CHECK(whole.result.signal == 0);
  for (std::int64_t stop = 1; stop <= whole.result.steps; stop += 3) {
    CAPTURE(stop);
    const TemporaryFolder folder;
    TrainerOptions options = comparing(2);
    options.output = folder / "run";
    options.steps = stop;
    SmallRun first;
    first.train(options, points(30), points(9, 100));
    options.steps = std::nullopt;
    const auto resume = [&](SmallRun& run) {
      Trainer trainer({small_model, run.store, test_backend(), points(30), points(9, 100)}, options);
      REQUIRE(trainer.resume());
      return trainer.run(run.seen);
    };
    SmallRun second;
    const TrainingResult result = resume(second);
    CHECK(result.steps == whole.result.steps);
    CHECK(result.best == whole.result.best);
    CHECK(weights(second.store) == weights(whole.store));
    // A run that has ended early has nothing left to do.
    SmallRun third;
    CHECK(resume(third).steps_now == 0);
  }
}

TEST_CASE("a run that is resumed with another goal compares from then on") {
  const TemporaryFolder folder;
  TrainerOptions options = comparing(std::nullopt);
  options.output = folder / "run";
  options.steps = 24;
  SmallRun first;
  first.train(options, points(30), points(9, 100));
  options.steps = 36;
  options.goal = EpochGoal{.metric = "accuracy", .mode = Plateau::max};
  SmallRun second;
  Trainer trainer({small_model, second.store, test_backend(), points(30), points(9, 100)}, options);
  REQUIRE(trainer.resume());
  const TrainingResult result = trainer.run(second.seen);
  CHECK(result.best.epoch >= 6);
  CHECK(result.best.value <= 1);
}

TEST_CASE("a run that is resumed without a goal keeps the best checkpoint, and can be compared again") {
  const TemporaryFolder folder;
  TrainerOptions options = comparing(std::nullopt);
  options.output = folder / "run";
  const auto train_until = [&](std::int64_t steps, bool resumes) {
    options.steps = steps;
    SmallRun run;
    Trainer trainer({small_model, run.store, test_backend(), points(30), points(9, 100)}, options);
    CHECK(trainer.resume() == resumes);
    return trainer.run(run.seen).best;
  };
  const BestEpoch best = train_until(24, false);
  options.goal.reset();
  CHECK(!train_until(32, true).is_known());
  CHECK(fs::read_symlink(folder / "run/best") == checkpoint_folder("", best.step));
  CHECK(fs::is_directory(folder / "run/best"));
  options.goal = EpochGoal{};
  CHECK(train_until(40, true).value <= best.value);
}

TEST_CASE("a plateau that is resumed with another metric observes from then on") {
  const TemporaryFolder folder;
  TrainerOptions options = momentum();
  options.output = folder / "run";
  options.epochs = 6;
  options.steps = 12;
  options.learning_rate =
      Schedule({.peak = 0.1, .decay = Plateau{.factor = 0.5, .patience = 0, .threshold = 0.5}});
  SmallRun first;
  first.train(options, points(30), points(9, 100));
  REQUIRE(first.seen.steps.back().learning_rate < 0.1);
  options.steps = 16;
  options.learning_rate =
      Schedule({.peak = 0.1, .decay = Plateau{.mode = Plateau::max, .metric = "accuracy"}});
  SmallRun second;
  Trainer trainer({small_model, second.store, test_backend(), points(30), points(9, 100)}, options);
  REQUIRE(trainer.resume());
  trainer.run(second.seen);
  CHECK(second.seen.steps.front().learning_rate == 0.1);
}

TEST_CASE("a goal needs a validation, and a metric that the model reports") {
  TrainerOptions options = comparing(1);
  SmallRun run;
  CHECK(
      user_error([&] { run.train(options, points(30), nullptr); }) ==
      "epochs are to be compared by the loss of the validation, and there are no samples for it; give some, "
      "in "
      "YAML with data.validation_share or data.validation_limit, or leave out TrainerOptions::goal, in YAML "
      "training.goal");
  options.goal->metric = "acuracy";
  CHECK(user_error([&] { run.train(options, points(30), points(9, 100)); }).find("'acuracy'") !=
        std::string::npos);
  options.goal = EpochGoal{.patience = 0};
  CHECK(user_error([&] { run.train(options, points(30), points(9, 100)); }) ==
        "the Trainer's patience of the goal is 0; give 1 or more");
}

TEST_CASE("an error of one rank in taking the averages of the weights ends all ranks") {
  std::array<std::string, 2> errors;
  ThreadRanks(2).run([&](Collective& ranks) {
    const auto inner = open_backend(test_backend().info().name);
    ScarceStaging backend(*inner, true);
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    TrainerOptions options = momentum();
    options.optimizer.ema = 0.9;
    Recorder seen;
    seen.after_step = [&](const StepRecord& record) {
      backend.is_used_up = ranks.rank() == 1 && record.step == 4;
    };
    errors.at(static_cast<std::size_t>(ranks.rank())) = user_error([&] {
      Trainer({small_model, store, backend, points(30), points(9, 100), &ranks, &strategy}, options)
          .run(seen);
    });
  });
  CHECK(errors[0] == "rank 1: this rank has no memory for copies");
  CHECK(errors[1] == "this rank has no memory for copies");
}

TEST_CASE("a run whose labels are all ignored ends with an error instead of figures that are no numbers") {
  // `train` and `validation`: whether their labels count.
  const auto error_of = [](bool train, bool validation) {
    ParameterStore store = small_store();
    const auto model = [=](const ModelInputs& inputs) {
      LossOutputs outputs = small_model(inputs);
      const bool counts = inputs.graph().mode() == Mode::train ? train : validation;
      const Node weight = inputs.graph().constant(Tensor::scalar(counts ? 8.0 : 0.0));
      return LossOutputs{.loss = outputs.loss * weight, .weight = weight};
    };
    return user_error([&] {
      Trainer({.model = model,
               .store = store,
               .backend = test_backend(),
               .train = points(16),
               .validation = points(8)},
              momentum())
          .run();
    });
  };
  CHECK(error_of(true, true).empty());
  CHECK(error_of(false, true).starts_with("epoch 1 has trained nothing: all of its labels are ignored"));
  CHECK(error_of(true, false).starts_with("nothing is validated: all labels of the validation samples"));
}

}  // namespace plexaura::testing::epochs_test
