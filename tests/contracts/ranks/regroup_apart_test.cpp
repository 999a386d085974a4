// The loss of a rank if each trains for itself: the survivors keep their own weights and states, and the
// state of their strategies. No sample is used twice in an epoch, and only samples of the interrupted step
// may be left out.

#include <algorithm>
#include <array>
#include <atomic>
#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "tests/support/backend.h"
#include "tests/support/leaving_collective.h"
#include "tests/support/passing_collective.h"
#include "tests/support/thread_collective.h"
#include "training/data/dataset.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::regroup_apart_test {

namespace {

constexpr int everyone = 3;
constexpr std::int64_t rows = 20;
constexpr std::int64_t epochs = 3;  // of 4 steps each
constexpr std::int64_t lost_rank = 1;
const TensorType weight{DType::float32, {rows, 2}};
const TensorType seen{DType::float32, {rows}};

// Sample i is a unit vector with a one at element i, so that the sum of samples shows which ones were used.
class Places final : public DatasetOf<float> {
 public:
  std::int64_t size() const override { return rows; }
  Shape sample_shape() const override { return Shape{rows}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t index) const override { return index % 2; }
  void read(std::int64_t index, const SampleContext&, std::span<float> sample,
            std::int64_t& label) const override {
    label = index % 2;
    std::ranges::fill(sample, 0.0F);
    sample[static_cast<std::size_t>(index)] = 1;
  }

 private:
  std::vector<std::string> names_{"a", "b"};
};

// The buffer counts how often this rank has used each sample.
LossOutputs model(const ModelInputs& inputs) {
  Graph& graph = inputs.graph();
  const Node samples = inputs["samples"];
  const Node counts = graph.buffer("seen", seen);
  if (graph.mode() == Mode::train) graph.update(counts, counts + sum(samples, {.axes = {0}}));
  return {softmax_cross_entropy(matmul(samples, graph.parameter("weight", weight)), inputs["labels"])};
}

// Every rank trains for itself. Its state is its own number.
class Apart final : public Strategy, public KeptState {
 public:
  explicit Apart(Collective& ranks, double own_state = 0) : own(own_state), ranks_(ranks) {}
  StrategyParts parts() override {
    return {.weights = &no_exchange_, .state = this, .scope = GradientScope::local, .realigns_weights = true};
  }
  void begin(WeightsImmigration& border) override { border_ = &border; }
  std::vector<StrategyState> state() const override { return {{"own", Tensor::scalar(own), true}}; }
  void take_state(std::vector<StrategyState> state) override { own = state.at(0).value.as<double>()[0]; }
  void complete_exchange() override {
    completed_at = border_->place();
    ranks_.gather_all("", "settling");
  }

  double own;
  std::optional<StepPlace> completed_at;

 private:
  WeightExchange no_exchange_;
  Collective& ranks_;
  WeightsImmigration* border_ = nullptr;
};

struct Rank {
  std::unique_ptr<Backend> backend = open_backend(test_backend().info().name);
  ParameterStore store{{{"weight", weight, ParameterRole::trainable, Initialiser::he_normal()},
                        {"seen", seen, ParameterRole::buffer, Initialiser::zeros()}},
                       3};
  std::unique_ptr<Apart> strategy;
  std::unique_ptr<Trainer> trainer;

  void make(Collective& ranks, double report_seconds) {
    strategy = std::make_unique<Apart>(ranks, 100.0 + ranks.rank());
    trainer = std::make_unique<Trainer>(TrainerParts{.model = model,
                                                     .store = store,
                                                     .backend = *backend,
                                                     .train = std::make_shared<const Places>(),
                                                     .validation = std::make_shared<const Places>(),
                                                     .collective = &ranks,
                                                     .strategy = strategy.get()},
                                        TrainerOptions{.batch_size = 6,
                                                       .epochs = epochs,
                                                       .optimizer = {.momentum = 0.9},
                                                       .learning_rate = 0.5,
                                                       .report_seconds = report_seconds});
  }

  void regroup(Collective& ranks) {
    const auto former = std::exchange(strategy, std::make_unique<Apart>(ranks));
    trainer->regroup(ranks, strategy.get());
  }

  std::vector<double> held() const {
    std::vector<double> values = store.read("weight").to_doubles();
    for (const double value : store.read_state(0, "weight").to_doubles()) values.push_back(value);
    return values;
  }
};

using All = std::array<Rank, everyone>;

// Trains until rank 1 is lost in the named call. With `one_has_passed`, rank 0 completes this call before it
// notices the loss.
void lose(All& all, std::string_view call, bool one_has_passed = false, double report_seconds = 0) {
  std::atomic<bool> others_have_heard = false;
  CHECK_THROWS_AS(ThreadRanks(everyone).run([&](Collective& ranks) {
    LeavingCollective leaving(ranks, ranks.rank() == lost_rank ? call : std::string_view());
    const std::string_view passed = one_has_passed && ranks.rank() == 0 ? call : std::string_view();
    PassingCollective passing(leaving, passed, others_have_heard);
    Rank& mine = all.at(static_cast<std::size_t>(ranks.rank()));
    mine.make(passing, report_seconds);
    try {
      mine.trainer->run();
    } catch (const Gone&) {
    } catch (const RankLost&) {
      others_have_heard = true;
      throw;
    }
  }),
                  RankLost);
}

Rank& left(All& all, int rank) { return all.at(rank == 0 ? 0 : 2); }

// Returns how often each sample was used, by all ranks including the lost one.
std::vector<double> times_seen(const All& all) {
  std::vector<double> times(rows);
  for (const Rank& rank : all) {
    const std::vector<double> counts = rank.store.read("seen").to_doubles();
    std::ranges::transform(times, counts, times.begin(), std::plus());
  }
  return times;
}

// Returns how often each sample is used if ranks 1 and 2 leave out their parts of these steps of an epoch.
std::vector<double> times_without(std::int64_t epoch, std::int64_t first, std::int64_t last) {
  std::vector<double> expected(rows, epochs);
  const BatchPlan plan{rows, 6, everyone};
  const std::vector<std::int64_t> order = epoch_order(rows, true, 0, epoch);
  for (std::int64_t step = first; step <= last; ++step)
    for (const int rank : {1, 2}) {
      const Slice share = plan.rank_share(step, rank);
      for (std::int64_t i = share.first; i < share.first + share.count; ++i)
        --expected.at(static_cast<std::size_t>(order.at(static_cast<std::size_t>(i))));
    }
  return expected;
}

// Returns 1 if metrics are read one step late, so that one more step was launched.
std::int64_t late() { return test_backend().info().host_memory ? 0 : 1; }

}  // namespace

TEST_CASE("ranks that train for themselves keep what is their own where another is lost") {
  All all;
  lose(all, "the loss of step 6");
  const std::array<std::vector<double>, 2> before{all[0].held(), all[2].held()};
  CHECK(before[0] != before[1]);
  ThreadRanks(2).run([&](Collective& ranks) {
    Rank& mine = left(all, ranks.rank());
    mine.regroup(ranks);
    CHECK(mine.held() == before.at(static_cast<std::size_t>(ranks.rank())));
    const auto facts = mine.trainer->facts();
    CHECK(facts.at("the first step") == std::to_string(7 + late()));
    CHECK(facts.count("initial weights") == 0);
    CHECK(mine.trainer->run().steps == 12);
    CHECK(mine.strategy->own == (ranks.rank() == 0 ? 100 : 102));
    CHECK(mine.strategy->completed_at->number == 6 + late());
    CHECK(mine.strategy->completed_at->epoch == 1);
    CHECK_FALSE(mine.strategy->completed_at->ends_epoch);
  });
  CHECK(times_seen(all) == std::vector<double>(rows, epochs));
}

TEST_CASE("the strategies of those that are left know that an epoch has ended") {
  All all;
  lose(all, "the loss of step 8");
  ThreadRanks(2).run([&](Collective& ranks) {
    Rank& mine = left(all, ranks.rank());
    mine.regroup(ranks);
    CHECK(mine.trainer->run().steps == 12);
    CHECK(mine.strategy->completed_at->number == 8);
    CHECK(mine.strategy->completed_at->epoch == 1);
    CHECK(mine.strategy->completed_at->ends_epoch);
  });
  CHECK(times_seen(all) == std::vector<double>(rows, epochs));
}

// Rank 0 knows that all ranks have made step 5, and has made the next one alone.
TEST_CASE("a rank that is a step behind keeps its weights, and leaves its part of that step out") {
  All all;
  lose(all, "the loss of step 5", true);
  const std::vector<double> behind = all[2].held();
  const std::int64_t step = 6 + late();
  ThreadRanks(2).run([&](Collective& ranks) {
    Rank& mine = left(all, ranks.rank());
    mine.regroup(ranks);
    CHECK(mine.trainer->facts().at("the first step") == std::to_string(step + 1));
    if (ranks.rank() == 1) CHECK(mine.held() == behind);
    CHECK(mine.trainer->run().steps == 12);
  });
  CHECK(times_seen(all) == times_without(1, step - 5, step - 5));
}

// Rank 0 knows that all ranks have made step 1, and has made the rest of the epoch before it waited for the
// others again.
TEST_CASE("a rank that is some steps behind leaves its parts of all of them out") {
  All all;
  lose(all, "the loss of step 1", true, 1);
  const std::vector<double> behind = all[2].held();
  ThreadRanks(2).run([&](Collective& ranks) {
    Rank& mine = left(all, ranks.rank());
    mine.regroup(ranks);
    CHECK(mine.trainer->facts().at("the first step") == "5");
    if (ranks.rank() == 1) CHECK(mine.held() == behind);
    CHECK(mine.trainer->run().steps == 12);
  });
  CHECK(times_seen(all) == times_without(0, 1 + late(), 3));
}

TEST_CASE("what is a rank's own outlives more losses while the others regroup and settle") {
  for (const char* call : {"the state of the strategy", "the steps of the ranks that are left", "settling"}) {
    CAPTURE(call);
    All all;
    lose(all, "the loss of step 6");
    CHECK_THROWS_AS(ThreadRanks(2).run([&](Collective& ranks) {
      LeavingCollective leaving(ranks, ranks.rank() == 1 ? call : "");
      Rank& mine = left(all, ranks.rank());
      // The former strategy stays alive, like that of a Trainer that only regroups.
      const auto former = std::exchange(mine.strategy, std::make_unique<Apart>(leaving));
      try {
        mine.trainer->regroup(leaving, mine.strategy.get());
        mine.trainer->run();
      } catch (const Gone&) {
      }
    }),
                    RankLost);
    const std::vector<double> before = all[0].held();
    SingleProcess alone;
    all[0].regroup(alone);
    CHECK(all[0].held() == before);
    CHECK(all[0].trainer->run().steps == 12);
    CHECK(all[0].strategy->own == 100);
  }
}

}  // namespace plexaura::testing::regroup_apart_test
