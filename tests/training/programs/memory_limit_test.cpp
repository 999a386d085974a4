#include "training/programs/memory_limit.h"

#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include "core/ops/batch_norm.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"
#include "tests/training/small_run.h"

namespace plexaura::testing::memory_limit_test {

namespace {

constexpr std::int64_t batch = 512;

// The memory of a step with the whole batch, and the weights after two steps.
struct Ended {
  StepMemory memory;
  std::vector<double> values;
};

Ended train(const ModelBuilder& model, std::optional<std::int64_t> memory, Collective* ranks = nullptr) {
  ParameterStore store = small_store();
  TrainerOptions options = momentum();
  options.batch_size = batch;
  options.steps = 2;
  options.epochs = 2;
  options.memory = memory;
  Trainer trainer({model, store, test_backend(), points(batch), points(20), ranks}, options);
  Ended ended{trainer.programs().memory(), {}};
  trainer.run();
  ended.values = weights(store);
  return ended;
}

std::int64_t share_of(const StepMemory& memory, double share) {
  return static_cast<std::int64_t>(share * static_cast<double>(memory.bytes));
}

LossOutputs normalised_model(const ModelInputs& inputs) {
  Graph& graph = inputs.graph();
  const Node first = graph.parameter("first", {DType::float64, Shape{4, 8}});
  const Node second = graph.parameter("second", {DType::float64, Shape{8, 3}});
  const Node ones = graph.constant(Tensor::of<double>({8}, std::vector<double>(8, 1.0)));
  const Node hidden = batch_norm(matmul(inputs["samples"], first), ones, ones).y;
  return {.loss = softmax_cross_entropy(matmul(hidden, second), inputs["labels"])};
}

}  // namespace

TEST_CASE("a step that recomputing does not make small enough is divided into micro-batches") {
  const Ended whole = train(small_model, std::nullopt);
  CHECK(whole.memory.bytes == whole.memory.unlimited_bytes);
  const std::int64_t limit = share_of(whole.memory, 0.3);
  const Ended ended = train(small_model, limit);
  CHECK(ended.memory.micro_batches > 1);
  CHECK(ended.memory.bytes <= static_cast<std::size_t>(limit));
  for (std::size_t i = 0; i < whole.values.size(); ++i)
    CHECK(std::abs(ended.values[i] - whole.values[i]) < 1e-12);
}

TEST_CASE("all ranks take the same number of micro-batches") {
  const std::int64_t limit = share_of(train(small_model, std::nullopt).memory, 0.2);
  std::array<std::int64_t, 2> numbers{};
  ThreadRanks(2).run([&](Collective& collective) {
    SummingStrategy strategy(collective);
    ParameterStore store = small_store();
    TrainerOptions options = momentum();
    options.batch_size = batch;
    options.memory = limit;
    const Trainer trainer({small_model, store, test_backend(), points(batch), {}, &collective, &strategy},
                          options);
    numbers.at(static_cast<std::size_t>(collective.rank())) = trainer.programs().memory().micro_batches;
  });
  CHECK(numbers[0] > 1);
  CHECK(numbers[0] == numbers[1]);
}

TEST_CASE("a model with batch norm is not divided, and the error names the number of micro-batches") {
  const std::int64_t limit = share_of(train(normalised_model, std::nullopt).memory, 0.4);
  const std::string text = user_error([&] { train(normalised_model, limit); });
  CHECK(text.starts_with(fmt::format(
      "training.memory is {} bytes, and a step with training.micro_batches 1 needs at least ", limit)));
  CHECK(text.find("; it fits with training.micro_batches ") != std::string::npos);
  CHECK(text.find(" samples at a time: set that, if it may, or raise training.memory") != std::string::npos);
}

TEST_CASE("what fits with no number of micro-batches is refused with the least that was found") {
  const std::string text = user_error([&] { train(small_model, 1000); });
  CHECK(
      text.starts_with("training.memory is 1000 bytes, and a step with training.micro_batches 512 needs at "
                       "least "));
  CHECK(text.ends_with("also if values are computed again; raise it, or lower training.batch_size"));
}

}  // namespace plexaura::testing::memory_limit_test
