// What a step on a device moves: its samples come in, and what it measured goes out. It waits for earlier steps alone. A backend
// that counts can show it.

#include <doctest/doctest.h>
#include <vector>

#include "core/device/transfer_counts.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "training/data/tensor_dataset.h"
#include "training/trainer.h"

namespace plexaura::testing::transfers_test {

namespace {

const TensorType weights{DType::float32, {3, 2}};

LossOutputs model(const ModelInputs& inputs) {
  return {squared_error(tanh(matmul(inputs["x"], inputs.graph().parameter("w", weights))), inputs["t"])};
}

// The counts after each step.
struct Counting final : TrainingObserver {
  explicit Counting(const CountsTransfers& device) : device(device) {}
  void step(const StepRecord&, std::int64_t) override { counts.push_back(device.transfers()); }

  const CountsTransfers& device;
  std::vector<TransferCounts> counts;
};

}  // namespace

TEST_CASE("a step moves its samples to the device and what it measured to the host, and no more") {
  const auto* const device = dynamic_cast<const CountsTransfers*>(&test_backend());
  if (device == nullptr) return;  // not every backend counts
  ParameterStore store({{"w", weights, ParameterRole::trainable, Initialiser::uniform(0.5)}}, 1);
  const auto samples = tensor_dataset({{"x", Tensor(TensorType{DType::float32, {80, 3}})},
                                       {"t", Tensor(TensorType{DType::float32, {80, 2}})}});
  Counting seen(*device);
  Trainer({model, store, test_backend(), samples}, {.batch_size = 4, .epochs = 1}).run(seen);
  REQUIRE(seen.counts.size() == 20);
  // The first ones record, and the last one starts no step before it is read.
  for (std::size_t step = 4; step < 19; ++step) {
    CAPTURE(step);
    const TransferCounts& before = seen.counts[step - 1];
    const TransferCounts& after = seen.counts[step];
    CHECK(after.copies - before.copies == 2);
    CHECK(after.recorded_copies == before.recorded_copies);
    CHECK(after.waits - before.waits == 3);
  }
}

}  // namespace plexaura::testing::transfers_test
