// Ranks on different kinds of processors round differently. In this test no strategy sums their gradients, so
// that differences of weights and buffers are visible.

#include <array>
#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "distributed/strategies/rebroadcast.h"
#include "tests/contracts/ranks/rows_run.h"
#include "tests/support/backend.h"
#include "tests/support/thread_collective.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::unlike_processors_test {

namespace {

const TensorType weight{DType::float32, {2, 2}};
const TensorType mean_type{DType::float32, {2}};

LossOutputs model(const ModelInputs& inputs) {
  Graph& graph = inputs.graph();
  const Node samples = inputs["samples"];
  const Node seen = graph.buffer("seen", mean_type);
  if (graph.mode() == Mode::train) graph.update(seen, mean(samples, {.axes = {0}}));
  return {squared_error(matmul(samples, graph.parameter("weight", weight)), samples)};
}

// Sums nothing, so that each rank trains for itself.
class Alone final : public Strategy {
 public:
  StrategyParts parts() override { return {.weights = &no_exchange_, .scope = GradientScope::local}; }

 private:
  WeightExchange no_exchange_;
};

struct End {
  std::array<Tensor, 3> weights;  // by rank
  std::array<Tensor, 3> seen;
  std::array<Tensor, 3> momentum;
  std::array<bool, 3> compares_kernels;
};

End train(std::int64_t steps, std::int64_t rebroadcast_every) {
  End end;
  ThreadRanks(3).run([&](Collective& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store({{"weight", weight, ParameterRole::trainable, Initialiser::he_normal()},
                          {"seen", mean_type, ParameterRole::buffer, Initialiser::zeros()}},
                         1);
    const auto data = std::make_shared<const CountingRows>(60, 2);
    Alone alone;
    Rebroadcast rebroadcast(alone, ranks, rebroadcast_every);
    Strategy* strategy = &alone;
    if (rebroadcast_every > 0) strategy = &rebroadcast;
    Trainer trainer({model, store, *backend, data, data, &ranks, strategy},
                    {.batch_size = 6, .steps = steps, .optimizer = {.momentum = 0.9}, .learning_rate = 0.1});
    end.compares_kernels.at(rank) = trainer.facts().contains("the plan's kernels");
    trainer.run();
    end.weights.at(rank) = store.read("weight");
    end.seen.at(rank) = store.read("seen");
    end.momentum.at(rank) = store.read_state(0, "weight");
  });
  return end;
}

}  // namespace

TEST_CASE("ranks on unlike processors take rank 0's weights, buffers and optimizer's state every few steps") {
  for (const std::int64_t steps : {3, 6}) {
    const End end = train(steps, 3);
    for (const std::size_t rank : {1, 2}) {
      CHECK(end.weights.at(rank) == end.weights[0]);
      CHECK(end.seen.at(rank) == end.seen[0]);
      CHECK(end.momentum.at(rank) == end.momentum[0]);
    }
  }
  const End between = train(5, 3);
  CHECK(between.weights[1] != between.weights[0]);
  CHECK(between.seen[1] != between.seen[0]);
  CHECK(between.momentum[1] != between.momentum[0]);
}

TEST_CASE("on processors of one kind the choice of kernels is compared, and weights stay where they are") {
  CHECK(train(1, 1).compares_kernels == std::array{false, false, false});
  const End end = train(3, 0);
  CHECK(end.compares_kernels == std::array{true, true, true});
  CHECK(end.weights[1] != end.weights[0]);
}

}  // namespace plexaura::testing::unlike_processors_test
