// A step on a device copies its samples in and its metrics out, and waits only for earlier steps. A backend
// that counts transfers shows this.

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "core/device/transfer.h"
#include "core/device/transfer_counts.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/backend_fixture.h"
#include "training/data/tensor_dataset.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::transfers_test {

namespace {

const TensorType weights{DType::float32, {3, 2}};

LossOutputs model(const ModelInputs& inputs) {
  return {squared_error(tanh(matmul(inputs["x"], inputs.graph().parameter("w", weights))), inputs["t"])};
}

// Records the counts after each step.
struct Counting final : TrainingObserver {
  explicit Counting(const CountsTransfers& device) : device(device) {}
  void step(const StepRecord&, std::int64_t) override { counts.push_back(device.transfers()); }

  const CountsTransfers& device;
  std::vector<TransferCounts> counts;
};

// Returns null, with a message, on a backend that does not count transfers. The plugin for GPUs counts them.
const CountsTransfers* counting_backend() {
  const std::string& name = test_backend().info().name;
  const auto* const device = dynamic_cast<const CountsTransfers*>(&test_backend());
  if (name.starts_with("cuda") || name.starts_with("simulated_cuda")) REQUIRE(device != nullptr);
  if (device == nullptr) MESSAGE("skipped: " << name << " does not count transfers");
  return device;
}

}  // namespace

TEST_CASE("a copy from host to device or back counts as a transfer, and one within the device does not") {
  const CountsTransfers* const device = counting_backend();
  if (device == nullptr) return;
  constexpr std::size_t bytes = 64;
  Backend& backend = test_backend();
  const auto host = backend.allocate(bytes, MemoryUse::staging);
  const auto one = backend.allocate(bytes, MemoryUse::device);
  const auto other = backend.allocate(bytes, MemoryUse::device);
  std::fill_n(host->address(), bytes, std::byte{7});
  const auto copies_of = [&](Address to, Address from) {
    const std::uint64_t before = device->transfers().copies;
    backend.copy(Stream::compute, to, from, bytes);
    wait_for(backend);
    return device->transfers().copies - before;
  };
  CHECK(copies_of(one->address(), host->address()) == 1);
  CHECK(copies_of(other->address(), one->address()) == 0);
  CHECK(copies_of(host->address(), other->address()) == 1);
}

TEST_CASE("a step moves its samples to the device and what it measured to the host, and no more") {
  const CountsTransfers* const device = counting_backend();
  if (device == nullptr) return;
  ParameterStore store({{"w", weights, ParameterRole::trainable, Initialiser::uniform(0.5)}}, 1);
  const auto samples = tensor_dataset({{"x", Tensor(TensorType{DType::float32, {80, 3}})},
                                       {"t", Tensor(TensorType{DType::float32, {80, 2}})}});
  Counting seen(*device);
  Trainer({model, store, test_backend(), samples}, {.batch_size = 4, .epochs = 1}).run(seen);
  REQUIRE(seen.counts.size() == 20);
  // Leaves out the first steps, which record, and the last one, during which no further step is started.
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
