#include "training/programs/memory_limit.h"

#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"
#include "tests/training/small_run.h"

namespace plexaura::testing::memory_limit_test {

namespace {

// A chain of layers of two values. Its values take little memory, so that limits a few hundred bytes apart
// lead to different choices.
constexpr int layers = 16;

ParameterStore narrow_store() {
  std::vector<ParameterSpec> specs;
  for (int layer = 0; layer <= layers; ++layer)
    specs.push_back({fmt::format("w{}", layer),
                     {DType::float64, Shape{layer == 0 ? 4 : 2, layer == layers ? 3 : 2}},
                     ParameterRole::trainable,
                     Initialiser::uniform(0.5)});
  return ParameterStore(specs, 1);
}

LossOutputs narrow_model(const ModelInputs& inputs) {
  const auto weight = [&](int layer) {
    return inputs.graph().parameter(fmt::format("w{}", layer),
                                    {DType::float64, Shape{layer == 0 ? 4 : 2, layer == layers ? 3 : 2}});
  };
  Node x = inputs["samples"];
  for (int layer = 0; layer < layers; ++layer) x = tanh(matmul(x, weight(layer)));
  return {.loss = softmax_cross_entropy(matmul(x, weight(layers)), inputs["labels"])};
}

// Returns the memory of a step for `samples` samples in batches of 64.
StepMemory memory_of(std::int64_t samples, std::optional<std::int64_t> limit,
                     std::int64_t micro_batches = 1) {
  ParameterStore store = narrow_store();
  TrainerOptions options = momentum();
  options.batch_size = 64;
  options.micro_batches = micro_batches;
  options.memory = limit;
  return Trainer({narrow_model, store, test_backend(), points(samples), points(20)}, options)
      .programs()
      .memory();
}

// Returns the shortage with this limit.
MemoryShortage shortage_of(std::int64_t samples, std::int64_t limit) {
  try {
    memory_of(samples, limit);
  } catch (const StepMemoryError& error) {
    return error.shortage();
  }
  FAIL("the step fits");
  return {};
}

}  // namespace

TEST_CASE("a last step with fewer samples keeps to the limit of the other steps") {
  const std::int64_t samples = 64 + 48;
  const auto most = static_cast<std::int64_t>(memory_of(samples, std::nullopt).bytes);
  const auto least = static_cast<std::int64_t>(shortage_of(samples, most / 2).least);
  CHECK(least < most * 9 / 10);
  for (int i = 0; i < 16; ++i) {
    const std::int64_t limit = least + (most - least) * i / 16;
    CAPTURE(limit);
    const StepMemory memory = memory_of(samples, limit);
    CHECK(memory.bytes <= static_cast<std::size_t>(limit));
    CHECK(memory.unlimited_bytes == static_cast<std::size_t>(most));
    CHECK(memory.share_again > 0);
  }
}

TEST_CASE("a limit counts the second arena of gradients of micro-batches") {
  const StepMemory divided = memory_of(64, std::nullopt, 2);
  CHECK(divided.others > memory_of(32, std::nullopt).others);
  const auto limit = static_cast<std::int64_t>(divided.bytes) - 1;
  CHECK(memory_of(64, limit, 2).bytes <= static_cast<std::size_t>(limit));
}

TEST_CASE("an error names the program, the least that was found, and what helps") {
  const StepMemory whole = memory_of(64, std::nullopt);
  const MemoryShortage shortage = shortage_of(64, static_cast<std::int64_t>(whole.others) + 64);
  CHECK(shortage.others == whole.others);
  CHECK(shortage.least < whole.bytes);
  CHECK(
      text_of(shortage) ==
      fmt::format("is {} bytes, and a step with 64 samples at a time needs at least {} bytes ({} of them for "
                  "parameters, gradients, the optimizer's state and inputs), also if values are computed "
                  "again; raise it, raise training.micro_batches, with which fewer samples are computed at "
                  "a time, or lower training.batch_size",
                  whole.others + 64, shortage.least, whole.others));
  const std::string text = user_error([] { memory_of(64, 1000); });
  CHECK(
      text.starts_with("TrainerOptions::memory is 1000 bytes, and a step with 64 samples at a time needs "));
  CHECK(text.ends_with("also if values are computed again; raise it"));
  CHECK(user_error([] { memory_of(64, 0); }) == "the Trainer's memory is 0; give 1 or more");
}

TEST_CASE("an error about a program that cannot compute values again does not mention that") {
  CHECK(text_of({.program = "the update", .memory = 10, .least = 30, .others = 20}) ==
        "is 10 bytes, and the update needs 30 bytes (20 of them for parameters, gradients, the "
        "optimizer's state and inputs); raise it");
}

TEST_CASE("all ranks have the same limit for their programs") {
  const auto most = static_cast<std::int64_t>(memory_of(64, std::nullopt).bytes);
  std::array<std::size_t, 2> bytes{};
  ThreadRanks(2).run([&](Collective& collective) {
    SummingStrategy strategy(collective);
    ParameterStore store = narrow_store();
    TrainerOptions options = momentum();
    options.batch_size = 127;
    options.memory = most - 512;
    const Trainer trainer({narrow_model, store, test_backend(), points(127), {}, &collective, &strategy},
                          options);
    bytes.at(static_cast<std::size_t>(collective.rank())) = trainer.programs().memory().others;
    CHECK(trainer.programs().memory().bytes <= static_cast<std::size_t>(most - 512));
  });
  CHECK(bytes[0] == bytes[1]);
}

}  // namespace plexaura::testing::memory_limit_test
