// Computing the gradients of a step changes only the gradient arena. A step whose update was skipped can be
// repeated, and ends in the same bits.

#include <doctest/doctest.h>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"

namespace plexaura::testing::repeat_test {

namespace {

const TensorType weights{DType::float32, {6, 3}};
const TensorType features{DType::float32, {3}};

LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  const Node y = matmul(dropout(x, {.p = 0.3}), graph.parameter("w", weights));
  const BatchNormResult norm =
      batch_norm(y, graph.parameter("scale", features), graph.parameter("shift", features));
  const Node running = graph.buffer("running", features);
  graph.update(running, running * 0.75 + norm.mean * 0.25);
  return {squared_error(norm.y, t)};
}

std::vector<ParameterSpec> specs() {
  return {{"w", weights, ParameterRole::trainable, Initialiser::uniform(1)},
          {"scale", features, ParameterRole::trainable, Initialiser::ones()},
          {"shift", features, ParameterRole::trainable, Initialiser::zeros()},
          {"running", features, ParameterRole::buffer, Initialiser::zeros()}};
}

Batch some_batch() {
  return {whole_numbers({DType::float32, {8, 6}}, 1), whole_numbers({DType::float32, {8, 3}}, 2)};
}

// Skips the updates of the repeated steps except for the last one, and records the gradients of every step.
struct Practising final : Strategy, GradientSum {
  StrategyParts parts() override { return {.gradients = this}; }
  void begin(WeightsImmigration& engine) override { border = &engine; }
  void gradients_ready(std::size_t, Event& event) override { final.push_back(&event); }
  UpdateAnswer before_update(std::size_t bucket) override {
    if (bucket > 0) return {};
    for (Event* event : std::exchange(final, {})) event->wait();
    gradients.clear();
    for (std::size_t each = 0; each < border->buckets().size(); ++each) {
      const auto bytes = border->gradients(each);
      gradients.insert(gradients.end(), bytes.begin(), bytes.end());
    }
    return {.skip = practises};
  }
  WeightsImmigration* border = nullptr;
  std::vector<Event*> final;
  bool practises = false;
  std::vector<std::byte> gradients;
};

}  // namespace

TEST_CASE("gradients that are computed again have the same bits, and so has the step that follows") {
  const Batch batch = some_batch();
  const std::vector<Batch> halves{part(batch, 0, 4), part(batch, 4, 4)};
  Practising never;
  Practising often;
  const auto options = [](Strategy& strategy) {
    return SmallTraining::Options{.optimizer = {.kind = OptimizerSpec::Kind::adam},
                                  .strategy = &strategy,
                                  .sizes = {4},
                                  .micro_batches = true,
                                  .seed = 5};
  };
  SmallTraining once(test_backend(), specs(), model, batch, options(never));
  SmallTraining again(test_backend(), specs(), model, batch, options(often));
  never.begin(once.steps().border());
  often.begin(again.steps().border());
  for (int step = 0; step < 3; ++step) {
    once.launch(halves, 0.1);
    const StepMetrics expected = once.metrics();
    for (int time = 0; time <= step; ++time) {
      often.practises = time < step;
      if (time > 0) again.give_up_step();  // so that the repeated step has the same number
      again.launch(halves, 0.1);
      CHECK(again.metrics().loss == expected.loss);
      CHECK(often.gradients == never.gradients);
    }
    check_same_values(again.store(), once.store());
  }
}

TEST_CASE("a skipped update changes nothing") {
  Practising strategy;
  const Batch batch = some_batch();
  SmallTraining run(test_backend(), specs(), model, batch, {.strategy = &strategy, .sizes = {8}});
  strategy.begin(run.steps().border());
  run.step(batch, 0.1);
  const Tensor before = run.value("w");
  const Tensor statistics = run.value("running");
  strategy.practises = true;
  run.step(batch, 0.1);
  CHECK(run.value("w") == before);
  CHECK(run.value("running") == statistics);
}

TEST_CASE("only the first bucket may be answered so") {
  struct Late final : Strategy, GradientSum {
    StrategyParts parts() override { return {.gradients = this}; }
    void gradients_ready(std::size_t, Event&) override {}
    UpdateAnswer before_update(std::size_t bucket) override { return {.skip = bucket == 1}; }
  };
  Late late;
  const Batch batch = some_batch();
  SmallTraining run(test_backend(), specs(), model, batch, {.strategy = &late, .sizes = {8}});
  CHECK_THROWS_AS(run.launch(std::span(&batch, 1), 0.1), InternalError);
}

}  // namespace plexaura::testing::repeat_test
