// The loss of a rank: the survivors share out the data again and continue from the same step with a new
// communicator, a new strategy and new programs. They end with the bits of ranks that had stopped before that
// step and were resumed with the smaller number.

#include <array>
#include <atomic>
#include <csignal>
#include <doctest/doctest.h>
#include <mutex>
#include <thread>
#include <utility>

#include "backends/registry.h"
#include "core/exchange/rank_lost.h"
#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/contracts/ranks/rows_run.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/leaving_collective.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::regroup_test {

namespace {

constexpr int everyone = 3;
constexpr std::int64_t epochs = 3;  // of 4 steps each

// The place at which a rank is lost: during an exchange, when the others agree on the update, after the
// update, or when it should validate the epoch that the step has ended.
struct Loss {
  enum class Place { exchange, agreement, after_update, validation };
  int rank = 1;
  std::int64_t step = 6;
  Place place = Place::exchange;
  int ahead = -1;  // the rank for which the agreement succeeds

  std::int64_t steps_done() const { return place == Place::exchange ? step - 1 : step; }
};

const TensorType first{DType::float32, {4, 5}};
const TensorType second{DType::float32, {5, 3}};

LossOutputs model(const ModelInputs& inputs) {
  Graph& graph = inputs.graph();
  const Node hidden = tanh(matmul(inputs["samples"], graph.parameter("first", first)));
  const Node seen = graph.buffer("seen", {DType::float32, {5}});
  if (graph.mode() == Mode::train) graph.update(seen, seen * 0.5 + mean(hidden, {.axes = {0}}));
  return {softmax_cross_entropy(matmul(hidden, graph.parameter("second", second)), inputs["labels"])};
}

std::vector<ParameterSpec> specs() {
  return {{"first", first, ParameterRole::trainable, Initialiser::he_normal()},
          {"second", second, ParameterRole::trainable, Initialiser::he_normal()},
          {"seen", {DType::float32, {5}}, ParameterRole::buffer, Initialiser::zeros()}};
}

std::atomic<bool> one_has_heard;  // true: one rank knows that the agreement failed

// Agrees before it updates. One rank leaves at the given place.
class Leaving final : public SummingStrategy, public WeightExchange {
 public:
  Leaving(Collective& ranks, std::optional<Loss> loss) : SummingStrategy(ranks), loss_(loss) {}
  StrategyParts parts() override {
    return {.gradients = this, .weights = this, .shows_weights = true, .agrees = true};
  }
  UpdateAnswer before_update(std::size_t bucket) override {
    if (bucket == 1) leave_at(Loss::Place::exchange);
    return SummingStrategy::before_update(bucket);
  }
  void agree() override {
    leave_at(Loss::Place::agreement);
    const bool is_ahead = loss_ && ranks_.rank() == loss_->ahead && border_->step() == loss_->step;
    if (is_ahead) {
      while (!one_has_heard) std::this_thread::yield();
      return;
    }
    try {
      agree_on_error(ranks_, nullptr, "the update");
    } catch (...) {
      one_has_heard = true;
      throw;
    }
  }
  void after_update() override {
    updated_in_ = border_->step();
    leave_at(Loss::Place::after_update);
    if (loss_ && loss_->place == Loss::Place::after_update) agree_on_error(ranks_, nullptr, "the weights");
  }
  void show_weights() override {
    if (updated_in_ == border_->step()) leave_at(Loss::Place::validation);
  }

 private:
  void leave_at(Loss::Place place) const {
    if (loss_ && loss_->place == place && loss_->rank == ranks_.rank() && loss_->step == border_->step())
      throw Gone();
  }

  std::optional<Loss> loss_;
  std::int64_t updated_in_ = 0;  // step
};

class Noting final : public TrainingObserver {
 public:
  void step(const StepRecord& record, std::int64_t) override {
    if (record.step == signal_after) std::raise(SIGTERM);
  }
  void epoch(const EpochRecord& record) override { epochs.push_back(record.epoch); }
  std::vector<std::int64_t> epochs;
  std::int64_t signal_after = -1;
};

// One rank, with everything that outlives its communicator.
struct Survivor {
  std::unique_ptr<Backend> backend = open_backend(test_backend().info().name);
  ParameterStore store{specs(), 3};
  std::unique_ptr<Strategy> strategy;
  std::unique_ptr<Trainer> trainer;
  Noting noted;

  void make(Collective& ranks, std::optional<Loss> loss, const TrainerOptions& options) {
    strategy = std::make_unique<Leaving>(ranks, loss);
    trainer = std::make_unique<Trainer>(TrainerParts{.model = model,
                                                     .store = store,
                                                     .backend = *backend,
                                                     .train = std::make_shared<const CountingRows>(20, 4),
                                                     .validation = std::make_shared<const CountingRows>(7, 4),
                                                     .collective = &ranks,
                                                     .strategy = strategy.get()},
                                        options);
  }

  void regroup(Collective& ranks) {
    const std::unique_ptr<Strategy> old = std::exchange(strategy, std::make_unique<Leaving>(ranks, Loss{-1}));
    noted = {};
    trainer->regroup(ranks, strategy.get());
  }
};

TrainerOptions options(const std::filesystem::path& output, std::optional<std::int64_t> steps = {}) {
  return {.batch_size = 6,
          .epochs = epochs,
          .steps = steps,
          .optimizer = {.kind = OptimizerSpec::Kind::adam},
          .learning_rate = 0.05,
          .output = output,
          .bucket_bytes = 1};
}

using All = std::array<Survivor, everyone>;

// Trains until the rank is lost, at its place or when it begins the named call.
void lose(All& all, const Loss& loss, const std::filesystem::path& output = {},
          std::int64_t signal_after = -1, std::string_view call = {}) {
  std::atomic<int> losses = 0;
  one_has_heard = false;
  CHECK_THROWS_AS(ThreadRanks(everyone).run([&](Collective& ranks) {
    Survivor& mine = all.at(static_cast<std::size_t>(ranks.rank()));
    LeavingCollective leaving(ranks, ranks.rank() == loss.rank ? call : std::string_view());
    mine.make(leaving, loss, options(output));
    if (ranks.rank() == 0) mine.noted.signal_after = signal_after;
    try {
      mine.trainer->run(mine.noted);
    } catch (const Gone&) {
    } catch (const RankLost& lost) {
      CHECK(lost.ranks() == std::vector<int>{loss.rank});
      ++losses;
      throw;
    }
  }),
                  RankLost);
  CHECK(losses == everyone - 1);
}

Survivor& left(All& all, const Loss& loss, int rank) {
  return all.at(static_cast<std::size_t>(rank < loss.rank ? rank : rank + 1));
}

}  // namespace

TEST_CASE("ranks that are left go on from the step in which one was lost") {
  const auto at_agreement = [](int ahead) { return Loss{1, 6, Loss::Place::agreement, ahead}; };
  for (const Loss& loss : {Loss{}, at_agreement(0), at_agreement(2), Loss{1, 6, Loss::Place::after_update},
                           Loss{1, 8, Loss::Place::validation}}) {
    CAPTURE(loss.ahead);
    CAPTURE(loss.step);
    All all;
    lose(all, loss);
    std::array<TrainingResult, 2> ends;
    ThreadRanks(2).run([&](Collective& ranks) {
      Survivor& mine = left(all, loss, ranks.rank());
      mine.regroup(ranks);
      const auto facts = mine.trainer->facts();
      CHECK(facts.at("the first step") == std::to_string(loss.steps_done() + 1));
      for (const char* fact : {"initial weights", "the optimizer's state"})
        CHECK(ranks.gather_all(facts.at(fact), fact)[0] == facts.at(fact));
      ends.at(static_cast<std::size_t>(ranks.rank())) = mine.trainer->run(mine.noted);
      CHECK(mine.noted.epochs == std::vector<std::int64_t>{1, 2});
    });

    const TemporaryFolder folder;
    ThreadRanks(everyone).run([&](Collective& ranks) {
      Survivor stopped;
      stopped.make(ranks, {}, options(folder.path(), loss.steps_done()));
      stopped.trainer->run();
    });
    std::mutex mutex;
    ThreadRanks(2).run([&](Collective& ranks) {
      Survivor resumed;
      resumed.make(ranks, {}, options(folder.path()));
      REQUIRE(resumed.trainer->resume());
      const TrainingResult end = resumed.trainer->run();
      const std::lock_guard lock(mutex);
      const Survivor& survivor = left(all, loss, ranks.rank());
      for (const ParameterSpec& spec : specs()) {
        CAPTURE(spec.name);
        CHECK(survivor.store.read(spec.name) == resumed.store.read(spec.name));
      }
      const TrainingResult& found = ends.at(static_cast<std::size_t>(ranks.rank()));
      CHECK(found.steps == end.steps);
      CHECK(found.steps_now == end.steps);
      CHECK(found.last_epoch->train_loss == end.last_epoch->train_loss);
      CHECK(found.last_epoch->val_loss == end.last_epoch->val_loss);
    });
  }
}

TEST_CASE("a spare takes the place of a lost rank, and the run ends as if nobody had been lost") {
  for (const Loss& loss : {Loss{.rank = 0, .step = 1}, Loss{}, Loss{0, 8, Loss::Place::validation}}) {
    CAPTURE(loss.step);
    All all;
    lose(all, loss);
    Survivor spare;
    SingleProcess alone;
    TrainerOptions waiting = options({});
    waiting.is_spare = true;
    spare.make(alone, {}, waiting);
    CHECK_THROWS_AS(spare.trainer->run(), UserError);
    All whole;
    ThreadRanks(everyone).run([&](Collective& ranks) {
      Survivor& mine = ranks.rank() + 1 == everyone ? spare : left(all, loss, ranks.rank());
      mine.regroup(ranks);
      mine.trainer->run();
    });
    ThreadRanks(everyone).run([&](Collective& ranks) {
      Survivor& mine = whole.at(static_cast<std::size_t>(ranks.rank()));
      mine.make(ranks, {}, options({}));
      mine.trainer->run();
    });
    for (const ParameterSpec& spec : specs()) {
      CAPTURE(spec.name);
      CHECK(spare.store.read(spec.name) == whole[0].store.read(spec.name));
      CHECK(left(all, loss, 0).store.read(spec.name) == whole[0].store.read(spec.name));
    }
  }
}

TEST_CASE("a step that was launched before a loss showed is not done again") {
  const Loss loss{.rank = 1, .step = 0};
  All all;
  lose(all, loss, {}, -1, "the tail of the first step");
  const std::int64_t done = test_backend().info().host_memory ? 1 : 2;  // one more if metrics are read late
  ThreadRanks(2).run([&](Collective& ranks) {
    Survivor& mine = left(all, loss, ranks.rank());
    mine.regroup(ranks);
    CHECK(mine.trainer->facts().at("the first step") == std::to_string(done + 1));
    CHECK(mine.trainer->run().steps == 12);
  });
}

TEST_CASE("the call in which ranks were lost is that of the exchange") {
  All all;
  ThreadRanks ranks(everyone);
  try {
    ranks.run([&](Collective& rank) {
      Survivor& mine = all.at(static_cast<std::size_t>(rank.rank()));
      mine.make(rank, Loss{}, options({}));
      try {
        mine.trainer->run();
      } catch (const Gone&) {
      }
    });
  } catch (const RankLost& lost) {
    CHECK(lost.call().find("bucket 1 of step 6") != std::string::npos);
  }
}

TEST_CASE("ranks that are left take the folder of checkpoints from a rank 0 that only seems to be dead") {
  const TemporaryFolder folder;
  const Loss loss{0};
  All all;
  lose(all, loss, folder.path());
  ThreadRanks(2).run([&](Collective& ranks) {
    Survivor& mine = left(all, loss, ranks.rank());
    mine.regroup(ranks);
    CHECK(mine.trainer->run().steps == 12);
  });
  CHECK(newest_checkpoint(folder.path())->filename() == "checkpoint-000012");
}

TEST_CASE("a signal that came before a loss ends the run after it") {
  const Loss loss;
  All all;
  const int late = test_backend().info().host_memory ? 0 : 1;  // steps by which answers are read late
  lose(all, loss, {}, loss.step - 1 - late);
  ThreadRanks(2).run([&](Collective& ranks) {
    Survivor& mine = left(all, loss, ranks.rank());
    mine.regroup(ranks);
    const TrainingResult end = mine.trainer->run();
    CHECK(end.steps == loss.step + late);
    CHECK(end.signal == SIGTERM);
  });
}

TEST_CASE("a rank may be lost while the others regroup, which these do again") {
  for (const char* call : {"the division of the data", "the steps of the ranks that are left"}) {
    CAPTURE(call);
    const Loss loss;
    All all;
    lose(all, loss);
    CHECK_THROWS_AS(ThreadRanks(2).run([&](Collective& ranks) {
      LeavingCollective leaving(ranks, ranks.rank() == 1 ? call : "");
      try {
        left(all, loss, ranks.rank()).regroup(leaving);
      } catch (const Gone&) {
      }
    }),
                    RankLost);
    Survivor& last = left(all, loss, 0);
    CHECK_THROWS_AS(last.trainer->facts(), UserError);
    CHECK_THROWS_AS(last.trainer->programs(), UserError);
    CHECK_THROWS_AS(last.trainer->run(), UserError);
    CHECK_THROWS_AS(last.trainer->validate(), UserError);
    SingleProcess alone;
    last.regroup(alone);
    CHECK(last.trainer->run().steps == 12);
  }
}

}  // namespace plexaura::testing::regroup_test
