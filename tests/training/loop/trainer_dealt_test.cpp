// Tests ranks that do not wait for each other, but draw the parts of an epoch: see StrategyParts::dealer.
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/exchange/rank_lost.h"
#include "tests/support/backend.h"
#include "tests/support/leaving_collective.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "tests/training/small_run.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::trainer_dealt_test {
namespace {

constexpr int rank_count = 3;
constexpr std::int64_t sample_count =
    21;  // three steps of 7 samples; each step has parts of 3, 2 and 2 samples

// A rank that makes its first draws, and draws again only when the other ranks have drawn all other parts of
// the epoch.
struct SlowRank {
  enum class Draws { no_part, first_part, first_part_and_stops };

  int rank = -1;                 // below 0: there is no slow rank
  Draws draws = Draws::no_part;  // what it draws before the others begin
};

// Deals out parts to ranks that are threads of this process.
class Heap {
 public:
  explicit Heap(const SlowRank& slow)
      : slow_(slow), is_open_(slow.rank < 0 || slow.draws == SlowRank::Draws::no_part) {}

  Draw draw(int rank, const DealtSteps& steps) {
    std::unique_lock lock(mutex_);
    if (rank != slow_.rank) {
      changed_.wait(lock, [&] { return is_open_; });
    } else if (next_ >= 0 || is_open_) {
      changed_.wait(lock, [&] { return next_ >= 0 && next_ >= end_; });
    } else {
      is_open_ = slow_.draws == SlowRank::Draws::first_part;
    }
    if (next_ < 0) {
      parts_ = steps.parts;
      next_ = steps.first * parts_;
      end_ = is_stopped_ ? next_ : (steps.end - 1) * parts_ + steps.parts_of_last;
    }
    if (next_ >= end_ - (keeps_one_back_ ? 1 : 0)) return {(end_ + parts_ - 1) / parts_};
    const std::int64_t part = next_++;
    changed_.notify_all();
    return {part / parts_, part % parts_};
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    end_ = std::min(end_, (next_ + parts_ - 1) / parts_ * parts_);
    is_open_ = true;
    changed_.notify_all();
  }
  // Ends the deal. If one part was kept back, the deal continues with that part.
  void close() {
    if (!std::exchange(keeps_one_back_, false)) next_ = -1;
  }
  void keep_one_back() { keeps_one_back_ = true; }
  bool keeps_one_back() const { return keeps_one_back_; }
  std::int64_t parts() const { return parts_; }  // of a step

 private:
  SlowRank slow_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_;
  bool is_stopped_ = false;
  bool keeps_one_back_ = false;  // one part of the deal is not dealt yet, as if a rank had drawn it and died
  std::int64_t parts_ = 1;       // of a step
  std::int64_t next_ = -1;       // below 0: no deal is open
  std::int64_t end_ = 0;
};

// At the end of a deal, all ranks take the weights of rank 0.
class Dealt final : public Strategy, public WeightExchange, public KeptState, public Dealer {
 public:
  Dealt(Collective& ranks, Heap& heap) : ranks_(ranks), heap_(heap) {}

  StrategyParts parts() override {
    return {
        .weights = this, .dealer = this, .state = this, .scope = GradientScope::local, .shows_weights = true};
  }
  void begin(WeightsImmigration& border) override { border_ = &border; }
  void show_weights() override {
    is_over_ = !heap_.keeps_one_back();
    const std::span<std::byte> values = border_->fetch_values();
    ranks_.broadcast(values.data(), values.size(), 0, "the weights of rank 0");
    border_->store_values();
    if (ranks_.rank() == 0) heap_.close();
    ranks_.gather_all("", "the end of the deal");
  }
  std::vector<StrategyState> state() const override {
    ++saves;
    return {};
  }
  void take_state(std::vector<StrategyState>) override {}
  Draw draw(const DealtSteps& steps) override {
    if (steps.behind == lost_in && lost_behind-- == 0) throw RankLost("a rank is lost", {}, "", true);
    return heap_.draw(ranks_.rank(), steps);
  }
  void stop() override { heap_.stop(); }
  bool is_over() const override { return is_over_; }

  mutable int saves = 0;
  int lost_behind = -1;      // the number of draws before another rank is lost; below 0: none is lost
  std::int64_t lost_in = 0;  // DealtSteps::behind of the deal in which it is lost

 private:
  Collective& ranks_;
  Heap& heap_;
  WeightsImmigration* border_ = nullptr;
  bool is_over_ = false;
};

// Counts how often each sample was read; one of them may be unreadable.
class Counted final : public SampleSource {
 public:
  explicit Counted(std::int64_t broken = -1) : broken_(broken) {}
  std::int64_t size() const override { return sample_count; }
  std::vector<Field> fields() const override { return source_->fields(); }
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override {
    if (index == broken_) throw UserError("sample 11 is torn");
    ++reads.at(static_cast<std::size_t>(index));
    source_->read_fields(index, context, values);
  }
  bool were_read(int times) const {
    return std::ranges::all_of(reads, [&](const auto& count) { return count == times; });
  }

  mutable std::array<std::atomic<int>, sample_count> reads = {};

 private:
  std::shared_ptr<const SampleSource> source_ = points(sample_count);
  std::int64_t broken_;
};

struct RankEnd {
  TrainingResult result;
  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;
  std::vector<double> weights;
  int saves = 0;
  std::string error;
};
using Ends = std::array<RankEnd, rank_count>;

struct Run {
  TrainerOptions options = {};
  std::shared_ptr<Counted> samples = std::make_shared<Counted>();
  SlowRank slow = {};
  bool resume = false;
  bool keeps_one_back = false;
  std::function<void(const StepRecord&)> after_step = {};    // on rank 0
  std::function<void(const EpochRecord&)> after_epoch = {};  // on rank 0
};

Ends train(const Run& run) {
  Ends ends;
  Heap heap(run.slow);
  if (run.keeps_one_back) heap.keep_one_back();
  ThreadRanks(rank_count).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    Dealt strategy(ranks, heap);
    TrainerOptions options = run.options;
    options.batch_size = 7;
    options.learning_rate = 0.1;
    Trainer trainer({small_model, store, *backend, run.samples, points(5), &ranks, &strategy}, options);
    if (run.resume) trainer.resume();
    Recorder seen;
    if (ranks.rank() == 0) {
      seen.after_step = run.after_step;
      seen.after_epoch = run.after_epoch;
    }
    RankEnd& end = ends.at(static_cast<std::size_t>(ranks.rank()));
    try {
      end.result = trainer.run(seen);
    } catch (const Error& error) {
      end.error = fmt::format("{}: {}", speaks(error) ? "says" : "hears", error.what());
    }
    end.steps = seen.steps;
    end.epochs = seen.epochs;
    end.weights = weights(store);
    end.saves = strategy.saves;
  });
  return ends;
}

}  // namespace

TEST_CASE("dealt data: each sample is read once an epoch, and all ranks end with the same figures") {
  const Run run{.options = {.epochs = 2}};
  const Ends ends = train(run);
  CHECK(run.samples->were_read(2));
  for (const RankEnd& end : ends) {
    CHECK(end.result.steps == 6);
    CHECK(end.result.images_per_second == ends[0].result.images_per_second);
    REQUIRE(end.epochs.size() == 2);
    CHECK(end.epochs[1].train_loss == ends[0].epochs[1].train_loss);
    CHECK(end.epochs[1].val_loss == ends[0].epochs[1].val_loss);
    CHECK(end.weights == ends[0].weights);
  }
}

// The test would hang if a rank waited for rank 2.
TEST_CASE("dealt data: ranks go on without one that is slow, which draws fewer parts") {
  const Run run{.options = {.epochs = 1, .workers = 0}, .slow = {2, SlowRank::Draws::first_part}};
  const Ends ends = train(run);
  CHECK(run.samples->were_read(1));
  CHECK(ends[2].steps.size() == 1);
  CHECK(ends[0].steps.size() + ends[1].steps.size() == 8);
}

TEST_CASE("dealt data: a rank that gets no part in an epoch still comes to its end") {
  const Run run{.options = {.epochs = 3, .workers = 0}, .slow = {1, SlowRank::Draws::no_part}};
  const Ends ends = train(run);
  CHECK(run.samples->were_read(3));
  CHECK(ends[1].steps.empty());
  for (const RankEnd& end : ends) {
    CHECK(end.result.steps == 9);
    CHECK(end.epochs.back().train_loss == ends[0].epochs.back().train_loss);
    CHECK(end.weights == ends[0].weights);
  }
}

TEST_CASE("dealt data: a step has the number of its place in the run") {
  const Ends ends = train({.options = {.epochs = 2}});
  std::array<int, 6> parts{};
  for (const RankEnd& end : ends)
    for (const StepRecord& step : end.steps) {
      CHECK(step.step == 3 * step.epoch + step.step_in_epoch);
      ++parts.at(static_cast<std::size_t>(step.step - 1));
    }
  CHECK(parts == std::array{3, 3, 3, 3, 3, 3});
}

TEST_CASE("dealt data: what one rank meets ends all with one word") {
  const Ends ends = train({.options = {.epochs = 2}, .samples = std::make_shared<Counted>(11)});
  int speakers = 0;
  for (const RankEnd& end : ends) {
    CHECK(end.error.find("sample 11 is torn") != std::string::npos);
    if (end.error.starts_with("says")) ++speakers;
  }
  CHECK(speakers == 1);
}

TEST_CASE("dealt data: a run that is stopped within an epoch goes on with the samples that are left") {
  const TemporaryFolder folder;
  Run run{.options = {.epochs = 2, .workers = 0, .output = folder / "run"},
          .slow = {0, SlowRank::Draws::first_part_and_stops}};
  run.after_step = [](const StepRecord&) { std::raise(SIGTERM); };
  for (const RankEnd& end : train(run)) {
    CHECK(end.result.signal == SIGTERM);
    CHECK(end.result.steps == 1);
  }
  run.slow = {};
  run.after_step = {};
  run.resume = true;
  const Ends resumed = train(run);
  CHECK(resumed[1].result.steps == 6);
  CHECK(run.samples->were_read(2));
  CHECK(resumed[1].epochs.front().train_loss > 0);
}

TEST_CASE("dealt data: a run that is stopped at the end of an epoch is not saved twice") {
  const TemporaryFolder folder;
  Run run{.options = {.epochs = 2, .output = folder / "run"}};
  run.after_epoch = [](const EpochRecord&) { std::raise(SIGTERM); };
  for (const RankEnd& end : train(run)) {
    CHECK(end.result.signal == SIGTERM);
    CHECK(end.result.steps == 3);
    CHECK(end.saves == 1);
  }
}

TEST_CASE("dealt data: a run that saves every so many steps meets there, too") {
  const TemporaryFolder folder;
  const Run run{.options = {.epochs = 2, .output = folder / "run", .save_every = 2}};
  const Ends ends = train(run);
  CHECK(run.samples->were_read(2));
  for (const RankEnd& end : ends) {
    CHECK(end.result.steps == 6);
    CHECK(end.saves == 4);  // after steps 2, 3, 4 and 6
    CHECK(end.epochs[1].train_loss == ends[0].epochs[1].train_loss);
    CHECK(end.weights == ends[0].weights);
  }
}

TEST_CASE("dealt data: where a dealer has more when all have met, they draw on") {
  const Run run{.options = {.epochs = 2}, .keeps_one_back = true};
  const Ends ends = train(run);
  CHECK(run.samples->were_read(2));
  for (const RankEnd& end : ends) {
    CHECK(end.result.steps == 6);
    CHECK(end.epochs[0].train_loss == ends[0].epochs[0].train_loss);
    CHECK(end.weights == ends[0].weights);
  }
}

TEST_CASE("dealt data: of what is dealt again, a rank that has failed leaves nothing") {
  const Ends ends =
      train({.options = {.epochs = 2}, .samples = std::make_shared<Counted>(11), .keeps_one_back = true});
  for (const RankEnd& end : ends) CHECK(end.error.find("sample 11 is torn") != std::string::npos);
}

namespace {

// A rank that remains after others were lost, with the parts that it keeps.
struct Survivor {
  std::unique_ptr<Backend> backend = open_backend(test_backend().info().name);
  ParameterStore store = small_store();
  std::unique_ptr<Dealt> strategy;
  std::unique_ptr<Trainer> trainer;
  Recorder seen;
};

}  // namespace

// A rank is lost when the ranks add up the results of an epoch, or when they validate. Its updates are
// already in the weights.
TEST_CASE("dealt data: ranks that are left meet again, and share out the next epochs") {
  for (const std::string call : {"the steps of epoch 1", "the report of epoch 1"}) {
    CAPTURE(call);
    std::array<Survivor, rank_count> all;
    const auto samples = std::make_shared<Counted>();
    Heap heap({});
    CHECK_THROWS_AS(ThreadRanks(rank_count).run([&](Collective& ranks) {
      LeavingCollective leaving(ranks, ranks.rank() == 1 ? std::string_view(call) : std::string_view());
      Survivor& mine = all.at(static_cast<std::size_t>(ranks.rank()));
      mine.strategy = std::make_unique<Dealt>(leaving, heap);
      mine.trainer =
          std::make_unique<Trainer>(TrainerParts{small_model, mine.store, *mine.backend, samples, points(5),
                                                 &leaving, mine.strategy.get()},
                                    TrainerOptions{.batch_size = 7,
                                                   .epochs = 3,
                                                   .optimizer = {.kind = OptimizerSpec::Kind::adam},
                                                   .learning_rate = 0.1});
      try {
        mine.trainer->run(mine.seen);
      } catch (const Gone&) {
      }
    }),
                    RankLost);
    ThreadRanks(2).run([&](Collective& ranks) {
      Survivor& mine = all.at(static_cast<std::size_t>(ranks.rank()) * 2);
      const auto former = std::exchange(mine.strategy, std::make_unique<Dealt>(ranks, heap));
      mine.trainer->regroup(ranks, mine.strategy.get());
      CHECK(mine.trainer->facts().at("the first step") == "4");
      CHECK_FALSE(mine.trainer->facts().contains("the optimizer's state"));
      CHECK(mine.trainer->run(mine.seen).steps == 9);
    });
    CHECK(samples->were_read(3));
    CHECK(weights(all[0].store) == weights(all[2].store));
    for (const int rank : {0, 2}) {
      const Recorder& seen = all.at(static_cast<std::size_t>(rank)).seen;
      REQUIRE(seen.epochs.size() == 3);
      for (const EpochRecord& epoch : seen.epochs)
        CHECK(epoch.train_loss == all[0].seen.epochs[static_cast<std::size_t>(epoch.epoch)].train_loss);
    }
  }
}

// A rank is lost during a deal, after the others have drawn some parts. No checkpoint is saved where the deal
// begins again, because the weights have changed since that point.
TEST_CASE("dealt data: ranks that are left begin a deal again, in the parts that it had") {
  std::int64_t lost_in = 0;
  SUBCASE("in the first epoch") {}
  SUBCASE("in the second") { lost_in = 3; }
  const TemporaryFolder folder;
  std::array<Survivor, rank_count> all;
  const auto samples = std::make_shared<Counted>();
  Heap heap({});
  CHECK_THROWS_AS(ThreadRanks(rank_count).run([&](Collective& ranks) {
    Survivor& mine = all.at(static_cast<std::size_t>(ranks.rank()));
    mine.strategy = std::make_unique<Dealt>(ranks, heap);
    mine.strategy->lost_behind = ranks.rank();
    mine.strategy->lost_in = lost_in;
    mine.trainer = std::make_unique<Trainer>(
        TrainerParts{small_model, mine.store, *mine.backend, samples, {}, &ranks, mine.strategy.get()},
        TrainerOptions{
            .batch_size = 7, .epochs = 2, .learning_rate = 0.1, .workers = 0, .output = folder / "run"});
    mine.trainer->run(mine.seen);
  }),
                  RankLost);
  heap.close();
  all[0].trainer.reset();  // the rank is gone, and so is its lock
  const int epochs_left = lost_in == 0 ? 2 : 1;
  for (auto& count : samples->reads) count = 0;
  ThreadRanks(2).run([&](Collective& ranks) {
    Survivor& mine = all.at(static_cast<std::size_t>(ranks.rank()) + 1);
    const auto former = std::exchange(mine.strategy, std::make_unique<Dealt>(ranks, heap));
    mine.trainer->regroup(ranks, mine.strategy.get());
    CHECK(mine.trainer->facts().at("the first step") == std::to_string(lost_in + 1));
    CHECK(mine.trainer->run(mine.seen).steps == 6);
    CHECK(mine.strategy->saves == epochs_left);
  });
  CHECK(samples->were_read(epochs_left));
  CHECK(heap.parts() == rank_count);
  CHECK(weights(all[1].store) == weights(all[2].store));
}

TEST_CASE("dealt data: a run of so many steps ends behind them, within an epoch, too") {
  const Run run{.options = {.epochs = 9, .steps = 5}};
  const Ends ends = train(run);
  for (const RankEnd& end : ends) CHECK(end.result.steps == 5);
  int reads = 0;
  for (const auto& count : run.samples->reads) reads += count;
  CHECK(reads == 5 * 7);
}

}  // namespace plexaura::testing::trainer_dealt_test
