#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/two_speeds.h"
#include "tests/training/small_run.h"
#include "training/checkpoints/checkpoint.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/files/folder_lock.h"

namespace plexaura::testing::trainer_resume_test {

namespace {

// A courier that brings samples, for a run of one rank.
class Bringing final : public Strategy, public Courier {
 public:
  StrategyParts parts() override { return {.courier = this}; }
  void send(Stream, int, std::span<const std::byte>) override {}
  std::optional<std::vector<std::byte>> receive(Stream, std::string_view) override { return std::nullopt; }
  void close(Stream, bool) noexcept override {}
};

}  // namespace

TEST_CASE("a run that stops anywhere and goes on ends bitwise equal") {
  SmallRun whole;
  whole.train(momentum(), points(30), points(9, 100));
  for (const std::int64_t stop : {1, 4, 6, 12}) {
    const TemporaryFolder folder;
    TrainerOptions options = momentum();
    options.output = folder / "run";
    options.steps = stop;
    SmallRun first;
    first.train(options, points(30), points(9, 100));
    CHECK(first.result.steps == stop);
    options.steps = std::nullopt;
    SmallRun second;
    Trainer trainer({small_model, second.store, test_backend(), points(30), points(9, 100)}, options);
    REQUIRE(trainer.resume());
    const TrainingResult result = trainer.run(second.seen);
    CHECK(result.steps == 12);
    CHECK(result.steps_now == 12 - stop);
    CHECK(weights(second.store) == weights(whole.store));
    // The epoch in which the run stopped is included, although both runs train a part of it.
    for (const EpochRecord& epoch : second.seen.epochs)
      CHECK(epoch.train_loss == whole.seen.epochs[static_cast<std::size_t>(epoch.epoch)].train_loss);
    CHECK(second.seen.epochs.size() == static_cast<std::size_t>(3 - stop / 4));
  }
}

TEST_CASE(
    "a run that goes on with another number of steps in an epoch goes on from its epoch of the schedule") {
  // Makes a schedule for epochs with this number of steps. The run has six epochs.
  using MakeSchedule = std::function<Schedule(std::int64_t)>;
  const std::map<std::string, MakeSchedule> schedules{
      {"constant", [](std::int64_t) { return Schedule(0.1); }},
      {"warm-up", [](std::int64_t steps) { return Schedule({.peak = 0.1, .warmup_steps = 4 * steps}); }},
      {"step",
       [](std::int64_t steps) {
         return Schedule({.peak = 0.1, .decay = StepDecay{2 * steps, 0.1}});
       }},
      {"cosine", [](std::int64_t steps) { return Schedule({.peak = 0.1, .decay = CosineDecay{6 * steps}}); }},
      {"one_cycle",
       [](std::int64_t steps) { return Schedule({.peak = 0.1, .decay = OneCycle{6 * steps}}); }}};
  for (const auto& [name, schedule] : schedules)
    for (const std::int64_t batch_size : {5, 8, 15}) {
      CAPTURE(name);
      CAPTURE(batch_size);
      const TemporaryFolder folder;
      TrainerOptions options = momentum();
      options.output = folder.path();
      options.epochs = 6;
      options.learning_rate = schedule(4);
      options.steps = 12;
      SmallRun first;
      first.train(options, points(30), nullptr);
      options.batch_size = batch_size;
      const std::int64_t steps = (30 + batch_size - 1) / batch_size;
      options.learning_rate = schedule(steps);
      options.steps = std::nullopt;
      SmallRun second;
      Trainer trainer({small_model, second.store, test_backend(), points(30)}, options);
      REQUIRE(trainer.resume());
      trainer.run(second.seen);
      REQUIRE(second.seen.steps.size() == static_cast<std::size_t>(3 * steps));
      for (std::size_t i = 0; i < second.seen.steps.size(); ++i)
        CHECK(second.seen.steps[i].learning_rate ==
              options.learning_rate.learning_rate(3 * steps + static_cast<std::int64_t>(i)));
    }
}

// A learning rate that is reduced whenever the validation does not improve by half.
TrainerOptions with_plateau() {
  TrainerOptions options = momentum();
  options.epochs = 6;
  options.learning_rate = Schedule(
      {.peak = 0.1, .warmup_steps = 2, .decay = Plateau{.factor = 0.5, .patience = 0, .threshold = 0.5}});
  return options;
}

TEST_CASE("a run with a plateau that stops anywhere and goes on has the same rates and bits") {
  SmallRun whole;
  whole.train(with_plateau(), points(30), points(9, 100));
  CHECK(whole.seen.steps.front().learning_rate == 0.05);
  CHECK(whole.seen.steps.back().learning_rate < 0.1);
  for (const std::int64_t stop : {4, 10, 13, 20}) {
    CAPTURE(stop);
    const TemporaryFolder folder;
    TrainerOptions options = with_plateau();
    options.output = folder / "run";
    options.steps = stop;
    SmallRun first;
    first.train(options, points(30), points(9, 100));
    options.steps = std::nullopt;
    SmallRun second;
    Trainer trainer({small_model, second.store, test_backend(), points(30), points(9, 100)}, options);
    REQUIRE(trainer.resume());
    trainer.run(second.seen);
    CHECK(weights(second.store) == weights(whole.store));
    for (const StepRecord& step : second.seen.steps)
      CHECK(step.learning_rate == whole.seen.steps[static_cast<std::size_t>(step.step - 1)].learning_rate);
  }
}

TEST_CASE("a plateau needs a validation, and a metric that the model reports") {
  TrainerOptions options = with_plateau();
  SmallRun run;
  CHECK(user_error([&] { run.train(options, points(30), nullptr); }) ==
        "the schedule of the learning rate is a plateau, which observes the validation, and there are no "
        "samples for it; give some, in YAML with data.validation_share or data.validation_limit, or choose "
        "another schedule");
  options.learning_rate = Schedule({.peak = 0.1, .decay = Plateau{.metric = "acuracy"}});
  CHECK(user_error([&] { run.train(options, points(30), points(9, 100)); }).find("'acuracy'") !=
        std::string::npos);
}

TEST_CASE("a plateau observes the metric of its name") {
  TrainerOptions options = with_plateau();
  options.learning_rate =
      Schedule({.peak = 0.1,
                .decay = Plateau{.factor = 0.5, .patience = 0, .mode = Plateau::max, .metric = "accuracy"}});
  SmallRun run;
  run.train(options, points(30), points(9, 100));
  PlateauState state;
  for (const EpochRecord& epoch : run.seen.epochs) {
    const auto first = static_cast<std::size_t>(4 * epoch.epoch);
    CHECK(run.seen.steps[first].learning_rate == options.learning_rate.learning_rate(4 * epoch.epoch, state));
    state = options.learning_rate.observe(value_of("accuracy", epoch.val_metrics), 4, state);
  }
  CHECK(state.reductions > 0);
}

TEST_CASE("a run saves every so many steps, too, and loses no more when it is killed") {
  SmallRun whole;
  whole.train(momentum(), points(30), points(9, 100));
  const TemporaryFolder folder;
  TrainerOptions options = momentum();
  options.output = folder / "run";
  options.save_every = 3;
  options.keep = 9;
  SmallRun killed;
  killed.seen.after_step = [](const StepRecord& step) {
    if (step.step == 8) throw UserError("killed");
  };
  CHECK(user_error([&] { killed.train(options, points(30), points(9, 100)); }) == "killed");
  std::set<std::string> saved;
  for (const auto& entry : std::filesystem::directory_iterator(options.output))
    if (entry.path().filename() != FolderLock::file_name) saved.insert(entry.path().filename());
  CHECK(saved == std::set<std::string>{"checkpoint-000003", "checkpoint-000004", "checkpoint-000006"});
  SmallRun second;
  Trainer trainer({small_model, second.store, test_backend(), points(30), points(9, 100)}, options);
  REQUIRE(trainer.resume());
  CHECK(trainer.run(second.seen).steps_now == 6);
  CHECK(weights(second.store) == weights(whole.store));
  CHECK(second.seen.epochs.back().train_loss == whole.seen.epochs.back().train_loss);
}

TEST_CASE("a resumed run takes the kernels of its checkpoint, and says where it cannot") {
  using namespace std::chrono_literals;
  const TemporaryFolder folder;
  TrainerOptions options = momentum();
  options.output = folder.path();
  options.steps = 4;
  struct Run {
    Run(Backend& backend, TrainerOptions options, Tuner* tuner)
        : trainer({small_model, store, backend, points(30), points(9, 100)},
                  with(std::move(options), tuner)) {}
    static TrainerOptions with(TrainerOptions options, Tuner* tuner) {
      options.tuner = tuner;
      return options;
    }
    bool takes(const std::string& kernel) const {
      return trainer.programs().largest().to_text().find(kernel) != std::string::npos;
    }
    ParameterStore store = small_store();
    Trainer trainer;
  };
  TwoSpeeds then(test_backend(), "matmul", 20ms, 0us);
  TwoSpeeds now(test_backend(), "matmul", 0us, 20ms);  // equal candidates with other speeds
  {
    Tuner tuner(Tuning::cached);
    Run first(then, options, &tuner);
    CHECK(first.takes("second"));
    first.trainer.run();
  }
  {
    Tuner tuner(Tuning::cached);
    REQUIRE(tuner.add(kernel_times_of_newest(folder.path())));
    Run resumed(now, options, &tuner);
    CHECK(tuner.measured() == 0);
    REQUIRE(resumed.trainer.resume());
    CHECK(resumed.takes("second"));
    CHECK(!resumed.trainer.has_other_kernels());
  }
  for (const bool measures : {false, true}) {
    Tuner tuner(Tuning::cached);
    Run resumed(now, options, measures ? &tuner : nullptr);
    REQUIRE(resumed.trainer.resume());
    CHECK(resumed.takes("first"));
    CHECK(resumed.trainer.has_other_kernels());
    CHECK(!resumed.trainer.has_other_buckets());
  }
}

TEST_CASE("a run that is resumed with buckets of another size knows it") {
  const TemporaryFolder folder;
  TrainerOptions options = momentum();
  options.output = folder.path();
  options.steps = 4;
  SmallRun().train(options, points(30), points(0));
  for (const std::int64_t bytes : {options.bucket_bytes, std::int64_t{1}}) {
    options.bucket_bytes = bytes;
    ParameterStore store = small_store();
    Trainer trainer({small_model, store, test_backend(), points(30)}, options);
    REQUIRE(trainer.resume());
    CHECK(trainer.has_other_buckets() == (bytes == 1));
    CHECK(trainer.has_other_kernels() == (bytes == 1));
  }
}

TEST_CASE("resuming needs the same seed, and within an epoch the same data and batches") {
  const TemporaryFolder folder;
  TrainerOptions options = momentum();
  options.output = folder.path();
  options.steps = 5;
  SmallRun().train(options, points(30), points(0));
  const auto refusal = [&](const TrainerOptions& changed, std::int64_t samples) {
    ParameterStore store = small_store();
    Trainer trainer({small_model, store, test_backend(), points(samples)}, changed);
    return user_error([&] { trainer.resume(); });
  };
  CHECK(refusal(options, 30).empty());
  TrainerOptions other_seed = options;
  other_seed.seed = 4;
  CHECK(refusal(other_seed, 30)
            .ends_with("was made with seed 3 and training.seed is 4; resume with the same seed"));
  TrainerOptions other_optimizer = options;
  other_optimizer.optimizer = {.kind = OptimizerSpec::Kind::adam};
  CHECK(refusal(other_optimizer, 30).find("was made with training.optimizer.name sgd and now it is adam") !=
        std::string::npos);
  TrainerOptions other_batch = options;
  other_batch.batch_size = 10;
  const std::string within = "was made within an epoch of 30 samples in batches of 8 and now there are ";
  TrainerOptions other_data = options;
  other_data.data_origin = 7;
  CHECK(refusal(other_data, 30).ends_with("resume with the same, or start from its weights with --weights"));
  other_data.older_data_origin = 8;
  CHECK(!refusal(other_data, 30).empty());
  other_data.older_data_origin = options.data_origin;  // as an older version computed it
  CHECK(refusal(other_data, 30).empty());
  CHECK(refusal(other_batch, 30)
            .ends_with(within + "30 in batches of 10; resume with the same data and batches"));
  TrainerOptions other_order = options;
  other_order.shuffle = false;
  CHECK(refusal(other_order, 30)
            .ends_with("was made within an epoch with data.shuffle true and now it is false, so that samples "
                       "would come twice or not at all; resume with the same"));
  TrainerOptions fewer = options;
  fewer.epochs = 1;
  CHECK(refusal(fewer, 30).ends_with(" is of epoch 2 and training.epochs is 1; set it to 2 or more"));
  CHECK(refusal(options, 31).ends_with(within + "31 in batches of 8; resume with the same data and batches"));
}

TEST_CASE("between epochs the order may change") {
  const TemporaryFolder folder;
  TrainerOptions options = momentum();
  options.output = folder.path();
  options.steps = 4;
  SmallRun().train(options, points(30), points(0));
  options.shuffle = false;
  ParameterStore store = small_store();
  Trainer trainer({small_model, store, test_backend(), points(30)}, options);
  CHECK(trainer.resume());
}

TEST_CASE("a folder of checkpoints that is removed during the run is made anew, with its lock") {
  const TemporaryFolder folder;
  TrainerOptions options = momentum();
  options.output = folder / "run";
  ParameterStore store = small_store();
  Trainer trainer({small_model, store, test_backend(), points(30)}, options);
  Recorder seen;
  seen.after_step = [&](const StepRecord& record) {
    if (record.step == 6) std::filesystem::remove_all(folder / "run");
  };
  trainer.run(seen);
  CHECK(newest_checkpoint(folder / "run") == folder / "run/checkpoint-000012");
  CHECK(user_error([&] {
          SmallRun().train(options, points(30), points(0));
        }).find("writes its checkpoints into " + (folder / "run").string()) != std::string::npos);
}

TEST_CASE("a folder of checkpoints that is removed while one is written is made anew") {
  const TemporaryFolder folder;
  TrainerOptions options = momentum();
  options.output = folder / "run";
  options.epochs = 30;
  std::atomic<bool> ended{false};
  // Renames the folder in one step, and at most once for each checkpoint, because a trainer does not retry
  // forever.
  std::thread remover([&] {
    bool removed = false;
    while (!ended) {
      if (!std::filesystem::exists(folder / "run/checkpoint.unfinished")) continue;
      if (removed && !newest_checkpoint(folder / "run")) continue;
      removed = true;
      std::error_code ignored;
      std::filesystem::rename(folder / "run", folder / "removed", ignored);
      std::filesystem::remove_all(folder / "removed", ignored);
    }
  });
  const std::string said = user_error([&] { SmallRun().train(options, points(30), points(0)); });
  ended = true;
  remover.join();
  CHECK(said.empty());
}

TEST_CASE("while a trainer lives no other may write into its folder") {
  const TemporaryFolder folder;
  TrainerOptions options = momentum();
  options.output = folder.path();
  ParameterStore store = small_store();
  const Trainer trainer({small_model, store, test_backend(), points(30)}, options);
  CHECK(user_error([&] {
          SmallRun().train(options, points(30), points(0));
        }).find("writes its checkpoints into " + folder.path().string()) != std::string::npos);
}

TEST_CASE("a run does not go on without lost ranks where rank 0 reads the data") {
  ParameterStore store = small_store();
  Bringing strategy;
  SingleProcess left;
  Trainer trainer({small_model, store, test_backend(), points(30), points(9, 100), &left, &strategy},
                  momentum());
  CHECK(user_error([&] { trainer.regroup(left, nullptr); }) ==
        "with this strategy rank 0 alone reads the data, and the ranks that are left may have none; continue "
        "from "
        "a checkpoint");
  CHECK(trainer.run().steps == 12);
}

TEST_CASE("a run does not remove the checkpoints of an earlier one by itself") {
  const TemporaryFolder folder;
  const auto run = [&](bool resumes, bool replaces) {
    ParameterStore store = small_store();
    TrainerOptions options = momentum();
    options.output = folder.path();
    options.replace = replaces;
    Trainer trainer({.model = small_model, .store = store, .backend = test_backend(), .train = points(30)},
                    options);
    if (resumes) CHECK(trainer.resume());
    trainer.run();
    CHECK(user_error([&] { trainer.resume(); }).starts_with("Trainer::resume was called after run"));
  };
  run(false, false);
  const std::string said = user_error([&] { run(false, false); });
  CHECK(said.starts_with("TrainerOptions::output is " + folder.path().string() + ", where an earlier run"));
  run(true, false);
  run(false, true);
}

// run() must not take a list of two pointers: a std::vector would be made from them as from the begin and the
// end of an array.
template <class T>
concept RunsWithPointers = requires(T& trainer, TrainingObserver* observer) {
  trainer.run({observer, observer});
};
static_assert(!RunsWithPointers<Trainer>);

}  // namespace plexaura::testing::trainer_resume_test
