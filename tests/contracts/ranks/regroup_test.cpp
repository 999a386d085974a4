// The loss of a rank in the middle of an exchange: those that are left share out the data anew and go on from the
// very step, with another communicator, another strategy and other programs, and end with the bits of ranks that
// had stopped before that step and were resumed as so few.

#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <mutex>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/ranks/rank_lost.h"
#include "tests/contracts/device/counting_rows.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "training/trainer.h"

namespace plexaura::testing {

namespace {

constexpr int everyone = 3;
constexpr int lost = 1;
constexpr std::int64_t lost_in_step = 6;  // the second of the second epoch
constexpr std::int64_t epochs = 3;

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

struct Gone {};

// Agrees before it updates; one rank goes away in the middle of an exchange.
class Leaving final : public SummingStrategy {
 public:
  Leaving(Collective& ranks, std::int64_t leaves_in_step)
      : SummingStrategy(ranks), leaves_in_step_(leaves_in_step) {}
  HookSet hooks() const override { return {.gradients_ready = true, .before_update = true, .agree = true}; }
  UpdateAnswer before_update(std::size_t bucket) override {
    if (bucket == 1 && border_->step() == leaves_in_step_ && ranks_.rank() == lost) throw Gone();
    return SummingStrategy::before_update(bucket);
  }
  UpdateAnswer::Kind agree() override {
    agree_on_error(ranks_, nullptr, "the update");
    return UpdateAnswer::Kind::ready;
  }

 private:
  std::int64_t leaves_in_step_;
};

// One rank with all that outlives its communicator.
struct Survivor {
  std::unique_ptr<Backend> backend = open_backend(test_backend().info().name);
  ParameterStore store{specs(), 3};
  std::unique_ptr<Strategy> strategy;
  std::unique_ptr<Trainer> trainer;

  void make(Collective& ranks, std::int64_t leaves_in_step, const TrainerOptions& options) {
    strategy = std::make_unique<Leaving>(ranks, leaves_in_step);
    trainer = std::make_unique<Trainer>(TrainerParts{.model = model,
                                                     .store = store,
                                                     .backend = *backend,
                                                     .train = std::make_shared<const CountingRows>(20, 4),
                                                     .validation = std::make_shared<const CountingRows>(7, 4),
                                                     .collective = &ranks,
                                                     .strategy = strategy.get()},
                                        options);
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

}  // namespace

TEST_CASE("ranks that are left go on from the step in which one was lost") {
  std::array<Survivor, everyone> all;
  int losses = 0;
  std::mutex mutex;
  CHECK_THROWS_AS(ThreadRanks(everyone).run([&](Collective& ranks) {
    Survivor& mine = all[static_cast<std::size_t>(ranks.rank())];
    mine.make(ranks, lost_in_step, options({}));
    try {
      mine.trainer->run();
    } catch (const Gone&) {
    } catch (const RankLost& loss) {
      const std::lock_guard lock(mutex);
      CHECK(loss.ranks() == std::vector<int>{lost});
      CHECK(loss.call().find(fmt::format("bucket 1 of step {}", lost_in_step)) != std::string::npos);
      ++losses;
      throw;
    }
  }),
                  RankLost);
  CHECK(losses == everyone - 1);

  std::array<TrainingResult, 2> ends;
  ThreadRanks(2).run([&](Collective& ranks) {
    Survivor& mine = all[ranks.rank() == 0 ? 0 : 2];
    const std::unique_ptr<Strategy> old = std::move(mine.strategy);
    mine.strategy = std::make_unique<Leaving>(ranks, 0);
    mine.trainer->regroup(ranks, mine.strategy.get());
    CHECK(mine.trainer->facts().at("the first step") == std::to_string(lost_in_step));
    ends[static_cast<std::size_t>(ranks.rank())] = mine.trainer->run();
  });

  const TemporaryFolder folder;
  ThreadRanks(everyone).run([&](Collective& ranks) {
    Survivor stopped;
    stopped.make(ranks, 0, options(folder.path(), lost_in_step - 1));
    stopped.trainer->run();
  });
  ThreadRanks(2).run([&](Collective& ranks) {
    Survivor resumed;
    resumed.make(ranks, 0, options(folder.path()));
    REQUIRE(resumed.trainer->resume());
    const TrainingResult end = resumed.trainer->run();
    const std::lock_guard lock(mutex);
    const Survivor& survivor = all[ranks.rank() == 0 ? 0 : 2];
    for (const ParameterSpec& spec : specs()) {
      CAPTURE(spec.name);
      CHECK(survivor.store.read(spec.name) == resumed.store.read(spec.name));
    }
    CHECK(ends[static_cast<std::size_t>(ranks.rank())].steps == end.steps);
    CHECK(ends[static_cast<std::size_t>(ranks.rank())].last_epoch->train_loss == end.last_epoch->train_loss);
    CHECK(ends[static_cast<std::size_t>(ranks.rank())].last_epoch->val_loss == end.last_epoch->val_loss);
  });
}

}  // namespace plexaura::testing
