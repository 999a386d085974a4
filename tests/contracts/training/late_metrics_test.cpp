// If a device computes in parallel with the host, the trainer launches a step before it reads the metrics of
// the previous one. Every step is still reported once and in order, and a condition that ends the run takes
// effect before anything is saved.

#include <csignal>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <limits>

#include "backends/registry.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "tests/contracts/device/counting_backend.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/data/tensor_dataset.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::late_metrics_test {

namespace {

constexpr std::int64_t samples = 24;
constexpr std::int64_t steps_in_epoch = 6;
const TensorType weights{DType::float32, {3, 2}};

bool is_late() { return !test_backend().info().host_memory; }

LossOutputs model(const ModelInputs& inputs) {
  return {squared_error(tanh(matmul(inputs["x"], inputs.graph().parameter("w", weights))), inputs["t"])};
}

ParameterStore new_store() {
  return ParameterStore({{"w", weights, ParameterRole::trainable, Initialiser::uniform(0.5)}}, 1);
}

TrainerOptions options_of(std::int64_t epochs) {
  return {.batch_size = samples / steps_in_epoch, .epochs = epochs, .optimizer = {.momentum = 0.5}};
}

// Samples, of which one may be unreadable.
class Samples final : public SampleSource {
 public:
  explicit Samples(std::int64_t broken = -1) : broken_(broken) {}
  std::int64_t size() const override { return samples; }
  std::vector<Field> fields() const override { return all_.fields(); }
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override {
    if (index == broken_) throw UserError(fmt::format("sample {} is broken", index));
    all_.read_fields(index, context, values);
  }

 private:
  std::int64_t broken_;
  TensorDataset all_{{{"x", whole_numbers({DType::float32, {samples, 3}}, 1)},
                      {"t", whole_numbers({DType::float32, {samples, 2}}, 2, 1)}}};
};

struct Observer final : TrainingObserver {
  void step(const StepRecord& record, std::int64_t) override {
    steps.push_back(record.step);
    losses.push_back(record.loss);
    if (after_step) after_step(record.step);
  }
  std::vector<std::int64_t> steps;
  std::vector<double> losses;
  std::function<void(std::int64_t)> after_step;
};

std::vector<std::int64_t> numbers(std::int64_t count) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 1; i <= count; ++i) all.push_back(i);
  return all;
}

}  // namespace

// The gradients of the first two steps are looked at before the next one is launched.
TEST_CASE("the next step is launched before the metrics of one are read, within an epoch") {
  CountingBackend backend(test_backend());
  ParameterStore store = new_store();
  Trainer trainer({model, store, backend, std::make_shared<Samples>()}, options_of(2));
  Observer seen;
  std::vector<std::int64_t> launched;
  seen.after_step = [&](std::int64_t) { launched.push_back(backend.counts().replays); };
  trainer.run(seen);
  CHECK(seen.steps == numbers(12));
  if (is_late()) CHECK(launched == std::vector<std::int64_t>{1, 2, 4, 5, 6, 6, 8, 9, 10, 11, 12, 12});

  ParameterStore again = new_store();
  Trainer prompt({model, again, oracle(), std::make_shared<Samples>()}, options_of(2));
  Observer expected;
  prompt.run(expected);
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(seen.losses[i] == doctest::Approx(expected.losses[i]).epsilon(1e-5));
}

TEST_CASE("a loss that is no number ends the run at most a step later, before anything is saved") {
  for (const std::int64_t lost : {7, 8, 10}) {
    CAPTURE(lost);
    const TemporaryFolder folder;
    ParameterStore store = new_store();
    TrainerOptions options = options_of(3);
    options.output = folder.path();
    Trainer trainer({model, store, test_backend(), std::make_shared<Samples>()}, options);
    Observer seen;
    seen.after_step = [&](std::int64_t step) {
      if (step == lost)
        store.write(
            "w", Tensor::of<float>({3, 2}, std::vector<float>(6, std::numeric_limits<float>::quiet_NaN())));
    };
    const std::int64_t told = lost + (is_late() ? 2 : 1);
    CHECK(user_error([&] {
            trainer.run(seen);
          }).starts_with(fmt::format("the loss of step {} is nan: training diverged", told)));
    CHECK(seen.steps == numbers(told - 1));
    CHECK(newest_checkpoint(folder.path()) == folder / "checkpoint-000006");
  }
}

TEST_CASE("a run that a signal ends goes on bitwise as if it had not been") {
  const TemporaryFolder folder;
  ParameterStore whole = new_store();
  Trainer({model, whole, test_backend(), std::make_shared<Samples>()}, options_of(2)).run();
  TrainerOptions options = options_of(2);
  options.output = folder.path();
  ParameterStore first = new_store();
  Observer seen;
  seen.after_step = [](std::int64_t step) {
    if (step == 3) std::raise(SIGTERM);
  };
  const TrainingResult result =
      Trainer({model, first, test_backend(), std::make_shared<Samples>()}, options).run(seen);
  CHECK(result.signal == SIGTERM);
  CHECK(result.steps == (is_late() ? 6 : 4));
  CHECK(seen.steps == numbers(result.steps));
  ParameterStore second = new_store();
  Trainer resumed({model, second, test_backend(), std::make_shared<Samples>()}, options);
  REQUIRE(resumed.resume());
  CHECK(resumed.run().steps == 12);
  CHECK(second.read("w") == whole.read("w"));
}

TEST_CASE("a sample that cannot be read ends all ranks after the same step with its error") {
  for (const bool mixed : {false, true}) {
    CAPTURE(mixed);
    std::vector<std::string> ends(2);
    std::vector<std::vector<std::int64_t>> steps(2);
    ThreadRanks(2, 20).run([&](Collective& ranks) {
      const auto rank = static_cast<std::size_t>(ranks.rank());
      const auto backend = open_backend(mixed && rank == 0 ? "portable" : test_backend().info().name);
      ParameterStore store = new_store();
      SummingStrategy strategy(ranks);
      TrainerOptions options = options_of(2);
      options.shuffle = false;
      // The second sample of rank 1 in step 4 cannot be read.
      Trainer trainer(
          {model, store, *backend, std::make_shared<Samples>(rank == 1 ? 15 : -1), {}, &ranks, &strategy},
          options);
      Observer seen;
      ends[rank] = user_error([&] { trainer.run(seen); });
      steps[rank] = seen.steps;
    });
    CHECK(ends[0] == "rank 1: sample 15 is broken");
    CHECK(ends[1] == "sample 15 is broken");
    for (const auto& seen : steps) CHECK(seen == numbers(3));
  }
}

}  // namespace plexaura::testing::late_metrics_test
