// A strategy may replace the weights instead of updating them. If it answers `skip`, the engine updates
// nothing, the step counts, its tail is the one that the strategy has summed, and the next reader of weights
// gets the new ones.

#include <cstring>
#include <doctest/doctest.h>

#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"

namespace plexaura::testing::skip_test {

namespace {

const TensorType type{DType::float32, {6, 2}};

LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  return {squared_error(tanh(matmul(x, graph.parameter("w", type))), t)};
}

std::vector<ParameterSpec> specs() {
  return {{"w", type, ParameterRole::trainable, Initialiser::uniform(0.5)}};
}

Batch some_batch() {
  return {whole_numbers({DType::float32, {4, 6}}, 1), whole_numbers({DType::float32, {4, 2}}, 2)};
}

// Doubles the count of samples in the tail, like a sum over two equal ranks.
class Replacing final : public Strategy, public GradientSum, public WeightExchange {
 public:
  StrategyParts parts() override { return {.gradients = this, .weights = this}; }
  void gradients_ready(std::size_t bucket, Event& final) override {
    if (bucket + 1 == border->buckets().size()) final_ = &final;
  }
  UpdateAnswer before_update(std::size_t bucket) override {
    if (bucket > 0 || !arriving) return {};
    final_->wait();
    for (std::byte* at : {tail(TailSlot::loss), tail(TailSlot::samples)}) {
      float value = 0;
      std::memcpy(&value, at, sizeof value);
      value *= 2;
      std::memcpy(at, &value, sizeof value);
    }
    return {.skip = true};
  }
  void after_update() override {
    if (arriving) border->immigrate("w", *arriving);
  }

  WeightsImmigration* border = nullptr;
  const Tensor* arriving = nullptr;

 private:
  std::byte* tail(TailSlot slot) const {
    const auto bytes = border->gradients(border->buckets().size() - 1);
    return bytes.data() + bytes.size() -
           (static_cast<std::size_t>(tail_count) - static_cast<std::size_t>(slot)) * sizeof(float);
  }
  Event* final_ = nullptr;
};

}  // namespace

TEST_CASE("weights arrive instead of an update") {
  Replacing strategy;
  const Batch batch = some_batch();
  const SmallTraining::Options options{.optimizer = {.kind = OptimizerSpec::Kind::adam},
                                       .strategy = &strategy};
  SmallTraining run(test_backend(), specs(), model, batch, options);
  SmallTraining plain(test_backend(), specs(), model, batch, {.optimizer = options.optimizer});
  strategy.border = &run.steps().border();
  CHECK(run.step(batch, 0.05).loss == plain.step(batch, 0.05).loss);

  const Tensor arriving = whole_numbers(type, 7);
  const Tensor moments = run.store().read_state(0, "w");
  strategy.arriving = &arriving;
  run.launch(std::span(&batch, 1), 0.05);
  const StepMetrics metrics = run.metrics();
  CHECK(metrics.samples == 8);
  CHECK(run.value("w") == arriving);
  CHECK(run.store().read_state(0, "w") == moments);

  // The next step begins with the new weights.
  strategy.arriving = nullptr;
  plain.step(batch, 0);
  plain.store().write("w", arriving);
  plain.store().write_state(0, "w", moments);
  plain.store().write_state(1, "w", run.store().read_state(1, "w"));
  CHECK(run.step(batch, 0.05).loss == plain.step(batch, 0.05).loss);
  check_same_values(run.store(), plain.store());
}

}  // namespace plexaura::testing::skip_test
