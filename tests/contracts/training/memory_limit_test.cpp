// A training step with a limit of memory ends with the bits of the step without one, on every backend: values
// are computed again by the same kernels, and dropout draws the same numbers.

#include <algorithm>
#include <doctest/doctest.h>

#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/subscript.h"
#include "core/ops/unary.h"
#include "core/scan/scan.h"
#include "models/zoo/resnet.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::memory_limit_test {

namespace {

// Numbers and labels from a seed.
class Noise final : public SampleSource {
 public:
  explicit Noise(Shape shape) : shape_(std::move(shape)) {}
  std::int64_t size() const override { return 16; }
  std::vector<Field> fields() const override {
    return {{"samples", {DType::float32, shape_}}, {"labels", {DType::int64, {}}}};
  }
  void read_fields(std::int64_t index, const SampleContext&,
                   std::span<const std::span<std::byte>> values) const override {
    Random random(static_cast<std::uint64_t>(index) + 1);
    const Tensor sample = random.tensor({DType::float32, shape_}, -1, 1);
    std::copy_n(sample.data(), sample.bytes(), values[0].data());
    const std::int64_t label = index % 4;
    std::copy_n(reinterpret_cast<const std::byte*>(&label), sizeof label, values[1].data());
  }

 private:
  Shape shape_;
};

struct Task {
  ModelBuilder model;
  std::function<ParameterStore()> make_store;
  Shape sample;
};

Task residual_net() {
  const auto net = std::make_shared<ResNet>(
      ModelInfo{.sample_shape = {3, 32, 32}, .classes = 4},
      ResNetOptions{.stages = {1, 1, 1}, .bottleneck = false, .width = 8, .zero_init_residual = false});
  return {[net](const ModelInputs& inputs) { return builder_of(*net)(inputs); },
          [net] { return make_store(*net, DType::float32, 1); },
          {3, 32, 32}};
}

// A recurrent layer with dropout, and products with dropout.
Task recurrent_net() {
  const TensorType square{DType::float32, {24, 24}};
  const ModelBuilder model = [square](const ModelInputs& inputs) -> LossOutputs {
    Graph& graph = inputs.graph();
    const Node recurrent = graph.parameter("recurrent", square);
    const Node x = inputs["samples"];
    Node carry = x[{slice(0, inputs.samples()), 0}];
    const ScanStep steps = scan({}, {carry},
                                [&](const auto& carries, const auto&) {
                                  const Node next = dropout(tanh(matmul(carries[0], recurrent)), {.p = 0.2});
                                  return ScanStep{{next}, {next * next}};
                                },
                                {.steps = 6});
    Node y = steps.carries[0] + mean(steps.outputs[0], {.axes = {0}});
    for (int layer = 0; layer < 4; ++layer)
      y = dropout(gelu(matmul(y, graph.parameter(std::string(1, static_cast<char>('a' + layer)), square))),
                  {.p = 0.2});
    return {.loss = mean(y * y)};
  };
  const auto store = [square] {
    std::vector<ParameterSpec> specs;
    for (const char* name : {"recurrent", "a", "b", "c", "d"})
      specs.push_back({name, square, ParameterRole::trainable, Initialiser::uniform(0.3)});
    return ParameterStore(specs, 1);
  };
  return {model, store, {2, 24}};
}

struct Ended {
  std::vector<Tensor> values;
  StepMemory memory;
};

Ended trained(const Task& task, std::optional<std::int64_t> memory, std::int64_t micro_batches = 1) {
  ParameterStore store = task.make_store();
  TrainerOptions options{.batch_size = 8, .micro_batches = micro_batches, .memory = memory, .steps = 3};
  options.learning_rate = 0.05;
  options.optimizer = {.momentum = 0.9};
  Trainer trainer({task.model, store, test_backend(), std::make_shared<Noise>(task.sample)}, options);
  Ended ended{{}, trainer.programs().memory()};
  trainer.run();
  for (const ParameterSpec& spec : store.specs()) ended.values.push_back(store.read(spec.name));
  return ended;
}

// Returns the least memory of a step that an error reports.
std::int64_t least_memory(const Task& task, std::int64_t micro_batches) {
  try {
    trained(task, 1, micro_batches);
  } catch (const StepMemoryError& error) {
    return static_cast<std::int64_t>(error.shortage().least);
  }
  FAIL("a step fits into 1 byte");
  return 0;
}

void check_limited(const Task& task, std::int64_t micro_batches, bool must_shrink) {
  const Ended whole = trained(task, std::nullopt, micro_batches);
  const auto most = static_cast<std::int64_t>(whole.memory.bytes);
  const std::int64_t least = least_memory(task, micro_batches);
  CHECK(least <= most);
  if (must_shrink) CHECK(least < most);
  for (const std::int64_t limit : {least, (least + most) / 2}) {
    CAPTURE(limit);
    const Ended ended = trained(task, limit, micro_batches);
    CHECK(ended.memory.bytes <= static_cast<std::size_t>(limit));
    CHECK(ended.memory.unlimited_bytes == whole.memory.bytes);
    for (std::size_t i = 0; i < whole.values.size(); ++i) CHECK(ended.values[i] == whole.values[i]);
  }
}

}  // namespace

TEST_CASE("a residual net within a limit of memory has the bits of the one without") {
  check_limited(residual_net(), 1, true);
}

TEST_CASE("micro-batches within a limit of memory have the bits of those without") {
  check_limited(residual_net(), 2, true);
}

TEST_CASE("a recurrent net with dropout within a limit of memory has the bits of the one without") {
  // The values of the loop are most of the memory, and are needed as a whole. Some devices save nothing beside them.
  check_limited(recurrent_net(), 1, false);
}

}  // namespace plexaura::testing::memory_limit_test
