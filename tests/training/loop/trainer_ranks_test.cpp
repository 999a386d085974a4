// Tests that all ranks of a run end in the same way, with one error.
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <mutex>

#include "backends/registry.h"
#include "core/ops/reduce.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/of_kind.h"
#include "tests/support/thread_collective.h"
#include "tests/support/two_speeds.h"
#include "tests/training/small_run.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::trainer_ranks_test {
namespace {

constexpr int rank_count = 3;

// Rank 0 serves.
class Serving final : public SummingStrategy, public Server {
 public:
  using SummingStrategy::SummingStrategy;
  StrategyParts parts() override {
    return {.gradients = this, .server = ranks_.rank() == 0 ? this : nullptr};
  }
  void serve(WeightsImmigration&) override {}
};

// Does not sum the last bucket, which contains the tail.
class WithoutTail final : public SummingStrategy {
 public:
  using SummingStrategy::SummingStrategy;
  UpdateAnswer before_update(std::size_t bucket) override {
    return bucket + 1 == border_->buckets().size() ? UpdateAnswer{} : SummingStrategy::before_update(bucket);
  }
};

// Makes a call of all ranks in begin().
class Greeting final : public SummingStrategy {
 public:
  using SummingStrategy::SummingStrategy;
  void begin(WeightsImmigration& border) override {
    SummingStrategy::begin(border);
    ranks_.gather_all("hello", "the beginning");
  }
};

// Throws in begin().
class Choosy final : public SummingStrategy {
 public:
  using SummingStrategy::SummingStrategy;
  void begin(WeightsImmigration&) override { throw UserError("gradients are of the wrong type"); }
};

// Throws on rank 1 only, like a log on a full disk on the rank that writes it.
class FullDisk final : public TrainingObserver {
 public:
  FullDisk(int rank, bool in_epoch) : rank_(rank), in_epoch_(in_epoch) {}
  void step(const StepRecord& record, std::int64_t) override { fail(!in_epoch_ && record.step == 2); }
  void epoch(const EpochRecord&) override { fail(in_epoch_); }

 private:
  void fail(bool now) const {
    if (now && rank_ == 1) throw UserError("the disk is full");
  }

  int rank_;
  bool in_epoch_;
};

// Ends the run early, by a call on rank 1 only.
class EndsEarly final : public TrainingObserver {
 public:
  EndsEarly(Trainer& trainer, int rank, bool in_epoch)
      : trainer_(trainer), rank_(rank), in_epoch_(in_epoch) {}
  void step(const StepRecord& record, std::int64_t) override {
    if (!in_epoch_ && rank_ == 1 && record.step == 4) trainer_.end_early();
  }
  void epoch(const EpochRecord&) override {
    if (in_epoch_ && rank_ == 1) trainer_.end_early();
  }

 private:
  Trainer& trainer_;
  int rank_;
  bool in_epoch_;
};

using Ends = std::array<std::string, rank_count>;
using MakeObserver = std::function<std::unique_ptr<TrainingObserver>(Trainer&, int rank)>;

Ends all(const std::string& end) { return {end, end, end}; }

// Returns how three ranks end that train with this strategy: the number of their steps, or the exit status
// and text of an error, and whether the rank prints it.
template <class S>
Ends endings(const std::function<TrainerOptions(int rank)>& options_of,
             const MakeObserver& make_observer = {}) {
  Ends ends;
  ThreadRanks(rank_count).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    S strategy(ranks);
    TrainerOptions options = options_of(ranks.rank());
    options.batch_size = 7;
    options.bucket_bytes = 1;
    Trainer trainer({small_model, store, *backend, points(21), points(0), &ranks, &strategy}, options);
    const auto observer =
        make_observer ? make_observer(trainer, ranks.rank()) : std::make_unique<TrainingObserver>();
    std::string& end = ends.at(static_cast<std::size_t>(ranks.rank()));
    try {
      const TrainingResult result = trainer.run(*observer);
      end = fmt::format("{} steps", result.steps);
      if (result.signal != 0) end += fmt::format(", signal {}", result.signal);
    } catch (const Error& error) {
      end = fmt::format("{}, {}: {}", error.exit_status(), speaks(error) ? "says" : "hears", error.what());
    }
  });
  return ends;
}

template <class S>
Ends endings(const TrainerOptions& options, const MakeObserver& make_observer = {}) {
  return endings<S>([&](int) { return options; }, make_observer);
}

// Returns the learning rates of `count` ranks whose schedule is a plateau.
std::vector<double> rates(int count) {
  std::mutex mutex;
  std::vector<std::vector<double>> found;
  ThreadRanks(count).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    TrainerOptions options = momentum();
    options.epochs = 5;
    options.learning_rate =
        Schedule({.peak = 0.1, .decay = Plateau{.factor = 0.5, .patience = 0, .threshold = 0.5}});
    Trainer trainer({small_model, store, *backend, points(30), points(9, 100), &ranks, &strategy}, options);
    Recorder seen;
    trainer.run(seen);
    std::vector<double> mine;
    for (const StepRecord& step : seen.steps) mine.push_back(step.learning_rate);
    const std::lock_guard lock(mutex);
    found.push_back(mine);
  });
  for (const std::vector<double>& theirs : found) CHECK(theirs == found.front());
  return found.front();
}

// Returns the validation of `count` ranks, which is the same on all of them.
Validation validated(int count) {
  std::mutex mutex;
  std::vector<Validation> found;
  ThreadRanks(count).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    Trainer trainer({small_model, store, *backend, points(21), points(11, 21), &ranks, &strategy},
                    {.batch_size = 7});
    Validation mine = trainer.validate();
    const std::lock_guard lock(mutex);
    found.push_back(std::move(mine));
  });
  for (const Validation& each : found) CHECK(each.loss == found[0].loss);
  return found[0];
}

// Returns the weights of rank 0 after a run of several ranks.
std::vector<double> trained(int count, const std::vector<ParameterGroup>& groups = {},
                            std::int64_t micro_batches = 1) {
  std::vector<double> end;
  ThreadRanks(count).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    TrainerOptions options = momentum();
    options.batch_size = 7;  // the parts have 3, 2 and 2 samples
    options.optimizer.groups = groups;
    options.micro_batches = micro_batches;
    Trainer trainer({small_model, store, *backend, points(21), {}, &ranks, &strategy}, options);
    trainer.run();
    if (ranks.rank() == 0) end = weights(store);
  });
  return end;
}

}  // namespace

TEST_CASE("ranks compare epochs alike, and end together when no epoch was better") {
  TrainerOptions options = momentum();
  options.epochs = 12;
  options.learning_rate = 0.7;
  options.goal = EpochGoal{.patience = 2};
  SmallRun alone;
  alone.train(options, points(30), points(9, 100));
  CHECK(alone.result.is_exhausted);
  ThreadRanks(3).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    Trainer trainer({small_model, store, *backend, points(30), points(9, 100), &ranks, &strategy}, options);
    const TrainingResult result = trainer.run();
    CHECK(result.is_exhausted);
    CHECK(result.best.epoch == alone.result.best.epoch);
    CHECK(result.steps == alone.result.steps);
  });
}

TEST_CASE("ranks reduce their learning rates at a plateau together, and as a single rank does") {
  CHECK(rates(1).back() < 0.1);
  CHECK(rates(3) == rates(1));
}

// Dropout depends on a sample's place in the whole batch, not on its place on its rank.
TEST_CASE("ranks drop out of their samples what one rank drops out of all") {
  const std::vector<double> alone = trained(1);
  const std::vector<double> together = trained(rank_count);
  REQUIRE(together.size() == alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i)
    CHECK(together[i] == doctest::Approx(alone[i]).epsilon(1e-12));
}

TEST_CASE("ranks and micro-batches train groups of parameters as one rank does") {
  const OptimizerSpec adam{.kind = OptimizerSpec::adam};
  for (const std::vector<ParameterGroup>& groups :
       {std::vector<ParameterGroup>{{"first", {.rate = 0.25, .decay = 0}}},
        std::vector<ParameterGroup>{{"first", {.rate = 0.25, .optimizer = adam}}}}) {
    const std::vector<double> alone = trained(1, groups);
    for (const auto& together : {trained(2, groups), trained(1, groups, 3), trained(2, groups, 2)}) {
      REQUIRE(together.size() == alone.size());
      for (std::size_t i = 0; i < alone.size(); ++i)
        CHECK(together[i] == doctest::Approx(alone[i]).epsilon(1e-12));
    }
    CHECK(alone != trained(1));
  }
}

TEST_CASE("a group without parameters is refused by all ranks and said by one") {
  Ends ends;
  ThreadRanks(rank_count).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    TrainerOptions options;
    options.optimizer.groups = {{"frist"}};
    try {
      Trainer({small_model, store, *backend, points(21), {}, &ranks, &strategy}, options);
    } catch (const Error& error) {
      ends.at(static_cast<std::size_t>(ranks.rank())) =
          fmt::format("{}: {}", speaks(error) ? "says" : "hears", error.what());
    }
  });
  const std::string text =
      "the group of parameters 'frist' has no effect: no parameter is named like its pattern; did you mean "
      "'first'?";
  CHECK(ends[0] == "says: " + text);
  for (const int rank : {1, 2}) CHECK(ends.at(static_cast<std::size_t>(rank)) == "hears: rank 0: " + text);
}

TEST_CASE("ranks without a strategy, a strategy without ranks and a rank that serves are refused") {
  std::array<std::string, 2> apart;
  std::array<std::string, 2> serving;
  std::array<std::string, 2> alone;
  ThreadRanks(2).run([&](Collective& ranks) {
    const auto refusal = [&](Collective* collective, Strategy* strategy) {
      ParameterStore store = small_store();
      const auto backend = open_backend(test_backend().info().name);
      return user_error([&] {
        Trainer({small_model, store, *backend, points(21), {}, collective, strategy}, {});
      });
    };
    const auto rank = static_cast<std::size_t>(ranks.rank());
    Serving serves(ranks);
    SummingStrategy sums(ranks);
    apart.at(rank) = refusal(&ranks, nullptr);
    serving.at(rank) = refusal(&ranks, &serves);
    alone.at(rank) = refusal(nullptr, &sums);
  });
  for (const std::string& text : apart)
    CHECK(text.find("the Trainer has 2 ranks and no strategy; set TrainerParts::strategy") != text.npos);
  CHECK(serving[0].starts_with("the strategy lets rank 0 serve, and a Trainer only trains"));
  CHECK(serving[1].find("the strategy lets rank 0 serve") != std::string::npos);
  for (const std::string& text : alone)
    CHECK(text.starts_with("the Trainer has a strategy and no ranks; set TrainerParts::collective"));
}

TEST_CASE("ranks that validate together find what one finds alone") {
  const Validation alone = validated(1);
  const Validation together = validated(rank_count);
  CHECK(alone.loss > 0);
  CHECK(together.loss == doctest::Approx(alone.loss).epsilon(1e-12));
  REQUIRE(together.metrics.size() == alone.metrics.size());
  for (std::size_t i = 0; i < alone.metrics.size(); ++i)
    CHECK(together.metrics[i].value == doctest::Approx(alone.metrics[i].value).epsilon(1e-12));
}

TEST_CASE("the watch tells once, as a mistake of the user, what all ranks meet in the update") {
  const Ends ends = endings<SummingStrategy>(
      {.steps = 2, .optimizer = {.weight_decay = 1e300}, .learning_rate = 1e300, .watch = true});
  CAPTURE(ends[0]);
  CHECK(ends[0].starts_with("2, says: "));
  CHECK(ends[0].find(" produced ") != std::string::npos);
  CHECK(ends[1] == ends[2]);
  CHECK(ends[1] == "2, hears: rank 0: " + ends[0].substr(9));
}

TEST_CASE("a loss that is not finite is told once") {
  const Ends ends =
      endings<SummingStrategy>({.steps = 3, .optimizer = {.weight_decay = 1e300}, .learning_rate = 1e300});
  CAPTURE(ends[0]);
  CHECK(ends[0].starts_with("2, says: the loss of step "));
  CHECK(ends[0].find(": training diverged; lower the learning rate") != std::string::npos);
  CHECK(ends[1] == ends[2]);
  CHECK(ends[1] == "2, hears: rank 0: " + ends[0].substr(9));
}

TEST_CASE("what the watch finds in the update of one rank alone ends all with its word") {
  const TrainerOptions tame{.steps = 2, .learning_rate = 0.1, .watch = true};
  TrainerOptions wild = tame;
  wild.optimizer.weight_decay = 1e300;
  wild.learning_rate = 1e300;
  const Ends ends = endings<SummingStrategy>([&](int rank) { return rank == 1 ? wild : tame; });
  CAPTURE(ends[1]);
  CHECK(ends[1].starts_with("2, says: "));
  CHECK(ends[1].find(" produced ") != std::string::npos);
  CHECK(ends[0] == ends[2]);
  CHECK(ends[0] == "2, hears: rank 1: " + ends[1].substr(9));
}

TEST_CASE("a strategy may call all ranks when it begins") {
  CHECK(endings<Greeting>({.steps = 1}) == all("1 steps"));
}

TEST_CASE("what a strategy refuses on all ranks when it begins is said by one") {
  const Ends ends = endings<Choosy>({.steps = 1});
  CHECK(ends[0] == "2, says: gradients are of the wrong type");
  for (const int rank : {1, 2})
    CHECK(ends.at(static_cast<std::size_t>(rank)) == "2, hears: rank 0: gradients are of the wrong type");
}

TEST_CASE("all ranks choose by what rank 0 has measured") {
  using namespace std::chrono_literals;
  std::mutex mutex;
  std::vector<std::string> programs;
  std::vector<std::string> facts;
  ThreadRanks(rank_count).run([&](Collective& ranks) {
    const auto inner = open_backend(test_backend().info().name);
    const bool is_first = ranks.rank() == 0;
    TwoSpeeds backend(*inner, "matmul", is_first ? 2000us : 0us, is_first ? 0us : 2000us);
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    Tuner tuner(Tuning::cached);
    const Trainer trainer({small_model, store, backend, points(21), points(0), &ranks, &strategy},
                          {.batch_size = 21, .tuner = &tuner});
    const std::lock_guard lock(mutex);
    programs.push_back(trainer.programs().largest().to_text());
    facts.push_back(trainer.facts().at("the plan's kernels"));
    CHECK((tuner.seconds_spent() > 0) == is_first);
  });
  for (int rank = 0; rank < rank_count; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    CHECK(programs[index].find("second") != std::string::npos);
    CHECK(programs[index] == programs[0]);
    CHECK(facts[index] == facts[0]);
  }
}

TEST_CASE("one rank of each kind of processor measures for all of its kind, and for the sizes of all") {
  using namespace std::chrono_literals;
  std::array<std::string, rank_count> programs;
  std::array<double, rank_count> seconds{};
  std::array<std::string, rank_count> in_use;
  std::array<std::size_t, rank_count> used{};
  ThreadRanks(rank_count).run([&](Collective& ranks) {
    const auto inner = open_backend(test_backend().info().name);
    const auto rank = static_cast<std::size_t>(ranks.rank());
    TwoSpeeds speeds(*inner, "matmul", rank == 1 ? 0us : 2000us, rank == 1 ? 2000us : 0us);
    OfKind backend(speeds, rank == 0 ? "fast" : "slow");
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    Tuner tuner(Tuning::cached);
    const Trainer trainer({small_model, store, backend, points(20), points(10), &ranks, &strategy},
                          {.batch_size = 20, .tuner = &tuner});  // the parts have 7, 7 and 6 samples
    programs.at(rank) = trainer.programs().largest().to_text();
    in_use.at(rank) = trainer.programs().kernel_times();
    seconds.at(rank) = tuner.seconds_spent();
    used.at(rank) = tuner.used();
  });
  CHECK(seconds[0] > 0);
  CHECK(seconds[1] > 0);
  CHECK(seconds[2] == 0);
  const auto takes = [&](std::size_t rank, const char* kernel) {
    return programs.at(rank).find(kernel) != std::string::npos;
  };
  CHECK(takes(0, "second"));
  CHECK(!takes(0, "first"));
  for (const std::size_t rank : {1, 2}) {
    CHECK(takes(rank, "first"));
    CHECK(!takes(rank, "second"));
    CHECK(used.at(rank) > 0);
    CHECK(in_use.at(rank) == in_use[0]);
  }
}

TEST_CASE("the programs of validation are measured, too, and those of all sizes") {
  using namespace std::chrono_literals;
  const auto measured = [](std::int64_t samples, std::int64_t validation) {
    TwoSpeeds backend(test_backend(), "matmul", 200us, 0us);
    ParameterStore store = small_store();
    Tuner tuner(Tuning::cached);
    const Trainer trainer({small_model, store, backend, points(samples), points(validation)},
                          {.batch_size = 8, .tuner = &tuner});
    CHECK(tuner.used() == tuner.measured());
    return tuner.measured();
  };
  const std::size_t alone = measured(16, 0);
  CHECK(measured(16, 5) > alone);
  CHECK(measured(17, 0) > alone);
}

TEST_CASE("measuring may take longer than ranks wait for each other") {
  using namespace std::chrono_literals;
  ThreadRanks(2, 3).run([&](Collective& ranks) {
    const auto inner = open_backend(test_backend().info().name);
    TwoSpeeds backend(*inner, "matmul", 600ms, 0us);
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    Tuner tuner(Tuning::cached);
    const Trainer trainer({small_model, store, backend, points(20), points(0), &ranks, &strategy},
                          {.batch_size = 20, .tuner = &tuner});
    if (ranks.rank() == 0) CHECK(tuner.seconds_spent() > 3);
  });
}

TEST_CASE("a strategy that does not sum the last bucket is told so after the first step") {
  CHECK(endings<SummingStrategy>({.steps = 2}) == all("2 steps"));
  CHECK(endings<WithoutTail>({.steps = 2})[0] ==
        "2, says: the strategy leaves rank 0 with a tail of 3 samples, but the step has 7: the last bucket "
        "carries loss and counts, and must be summed over all ranks like the others");
}

TEST_CASE("what an observer meets on one rank ends all of them with its error") {
  for (const bool in_epoch : {false, true}) {
    const std::string hears = "2, hears: rank 1: the disk is full";
    CHECK(endings<SummingStrategy>({.epochs = 2}, [&](Trainer&, int rank) {
            return std::make_unique<FullDisk>(rank, in_epoch);
          }) == Ends{hears, "2, says: the disk is full", hears});
  }
}

TEST_CASE("an observer of one rank ends the run of all early, which no signal has ended") {
  for (const bool in_epoch : {false, true}) {
    CHECK(endings<SummingStrategy>({.epochs = 3}, [&](Trainer& trainer, int rank) {
            return std::make_unique<EndsEarly>(trainer, rank, in_epoch);
          }) == all(in_epoch ? "3 steps" : "5 steps"));
  }
}

TEST_CASE("a buffer that a model sets gets the mean over the samples of all ranks, whatever it held") {
  const TensorType four{DType::float64, {4}};
  const ModelBuilder model = [&](const ModelInputs& inputs) {
    inputs.graph().update(inputs.graph().buffer("last", four), mean(inputs["samples"], {.axes = {0}}));
    return small_model(inputs);
  };
  const auto store_of_model = [&] {
    std::vector<ParameterSpec> specs = small_store().specs();
    specs.push_back({"last", four, ParameterRole::buffer, Initialiser::constant(1e300)});
    return ParameterStore(std::move(specs), 1);
  };
  TrainerOptions options = momentum();
  options.batch_size = 7;  // a rank has 3 or 2 of these samples
  options.steps = 2;
  ParameterStore expected = store_of_model();
  Trainer({model, expected, test_backend(), points(21)}, options).run();
  std::array<std::vector<double>, rank_count> last;
  ThreadRanks(rank_count).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = store_of_model();
    SummingStrategy strategy(ranks);
    Trainer({model, store, *backend, points(21), {}, &ranks, &strategy}, options).run();
    last[static_cast<std::size_t>(ranks.rank())] = store.read("last").to_doubles();
  });
  for (const std::vector<double>& of_rank : last) {
    CHECK(of_rank == last[0]);
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(of_rank[i] == doctest::Approx(expected.read("last").to_doubles()[i]).epsilon(1e-12));
  }
}

}  // namespace plexaura::testing::trainer_ranks_test
