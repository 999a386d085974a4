// Our code allocates no memory in VM::run and TrainingStep::run, in any thread, once each feed slot was used.
// The library allocates the same in every step, and the process neither grows nor touches new pages.

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include "core/compile/link.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/labels.h"
#include "core/ops/matmul.h"
#include "core/ops/pool2d.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "core/step/training_step.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/vm/allocations/interpose.h"
#include "training/optimizers/optimizer_spec.h"

namespace plexaura::testing {

namespace {

constexpr std::int64_t samples = 8;
const TensorType conv_type{DType::float32, {16, 3, 3, 3}};
const TensorType channels{DType::float32, {16}};
const TensorType out_type{DType::float32, {16L * 7 * 7, 5}};

LossOutputs model(Graph& graph) {
  const Node x = graph.input("x", {DType::float32, {samples, 3, 16, 16}});
  const Node labels = graph.input("labels", {DType::int64, {samples}});
  const Node hidden = conv2d(x, graph.parameter("conv", conv_type));
  const BatchNormResult norm =
      batch_norm(hidden, graph.parameter("scale", channels), graph.parameter("shift", channels));
  const Node running = graph.buffer("running", channels);
  graph.update(running, running * 0.9 + norm.mean * 0.1);
  const Node pooled = max_pool2d(relu(norm.y), {.kernel = {2, 2}});
  const Node logits = matmul(dropout(flatten(pooled), {.p = 0.5}), graph.parameter("out", out_type));
  return {.loss = softmax_cross_entropy(logits, labels),
          .metrics = {{.name = "accuracy", .sum = top_k_correct(logits, labels)}}};
}

std::vector<ParameterSpec> specs() {
  return {{"conv", conv_type, ParameterRole::trainable, Initialiser::he_normal()},
          {"scale", channels, ParameterRole::trainable, Initialiser::ones()},
          {"shift", channels, ParameterRole::trainable, Initialiser::zeros()},
          {"out", out_type, ParameterRole::trainable, Initialiser::he_normal()},
          {"running", channels, ParameterRole::buffer, Initialiser::zeros()}};
}

// A strategy with parts that do nothing.
struct Watching final : Strategy, GradientSum, WeightExchange {
  StrategyParts parts() override { return {.gradients = this, .weights = this}; }
  void gradients_ready(std::size_t, Event&) override {}
  UpdateAnswer before_update(std::size_t) override { return {}; }
};

struct Growth {
  AllocationCounts allocations;
  long page_faults;
  std::size_t heap;
};

std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.arena + info.hblkhd;
}

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

template <class F>
Growth measure(int times, F&& action) {
  const std::size_t heap = heap_bytes();
  const long faults = page_faults();
  start_counting();
  for (int i = 0; i < times; ++i) action();
  const AllocationCounts counts = stop_counting();
  return {counts, page_faults() - faults, heap_bytes() - heap};
}

template <class F>
void check_steady(const std::string& what, F&& action) {
  CAPTURE(what);
  for (int i = 0; i < 6; ++i) action();
  const Growth one = measure(1, action);
  CHECK_MESSAGE(one.allocations.ours == 0, first_of_ours());
  const Growth ten = measure(10, action);
  CHECK_MESSAGE(ten.allocations.ours == 0, first_of_ours());
  CHECK(ten.allocations.mapped == 0);
  CHECK(ten.allocations.library == 10 * one.allocations.library);
  CHECK(ten.allocations.library_bytes == 10 * one.allocations.library_bytes);
  CHECK(ten.heap == 0);
  CHECK(ten.page_faults == 0);
  MESSAGE(fmt::format("{} on {}: {} allocations of the library, {} bytes, in each run", what,
                      test_backend().info().name, one.allocations.library, one.allocations.library_bytes));
}

}  // namespace

TEST_CASE("an allocation is noticed") {
  start_counting();
  auto* made = new std::vector<int>(100);
  CHECK(stop_counting().ours == 2);
  delete made;
}

TEST_CASE("runs and steps allocate nothing") {
  Backend& backend = test_backend();
  ParameterStore store(specs());
  const auto compile_gradients = [&](const Placement* placement) {
    Graph graph;
    const auto outputs = training_outputs(graph, model(graph), store, samples);
    return compile(graph, outputs, backend, {.placement = placement, .apply_updates = false});
  };
  store.place(compile_gradients(nullptr)->placement, backend);
  const OptimizerSpec optimizer{.kind = OptimizerSpec::Kind::adam};
  store.require_states(state_count(optimizer));
  Watching watching;
  const StrategyInUse strategy(&watching);
  TrainingStep step(backend, store, strategy, 1 << 10);
  Graph graph;
  build_update(graph, optimizer, store.placement(), step.border().buckets());
  const auto update = compile(graph, {}, backend, {.placement = &store.placement()});
  const auto first = compile_gradients(&store.placement());
  step.add_program(samples, true, first, nullptr, nullptr);
  step.add_program(samples, false, add_to_gradients(*first, step.border().buckets(), backend), update.get(),
                   nullptr);

  Random random(1);
  const Tensor x = random.tensor({DType::float32, {samples, 3, 16, 16}}, -1, 1);
  const Tensor labels = Tensor::of<std::int64_t>({samples}, {0, 1, 2, 3, 4, 0, 1, 2});
  const Feed feeds[] = {{"x", x}, {"labels", labels}};
  const MicroBatchInputs batches[] = {{feeds, samples, 0}, {feeds, samples, samples}};
  StepInputs inputs;
  inputs.micro_batches = batches;
  inputs.global_samples = 2 * samples;
  inputs.learning_rate = 0.01;
  StepMetrics metrics;
  check_steady("a step of two micro-batches", [&] {
    metrics = step.metrics(step.run(inputs));
    ++inputs.step;
  });
  CHECK(metrics.samples == 2 * samples);

  Graph forward(Mode::inference);
  const std::vector<ProgramOutput> outputs{{.node = model(forward).loss}};
  VM vm(compile(forward, outputs, backend, {.placement = &store.placement(), .apply_updates = false}),
        backend, {.store = &store});
  check_steady("a run", [&] {
    store.raise_version();  // so that the prologue runs too
    vm.run(feeds);
  });
}

TEST_CASE("padding is cleared without allocating") {
  Backend& backend = test_backend();
  const Shape shape{samples, 17, 12, 12};
  Graph graph;
  const auto vector = [&](const char* name, const Shape& of) {
    return graph.input(name, {DType::float32, of});
  };
  const Node normal = batch_norm(vector("x", shape), vector("scale", {17}), vector("shift", {17})).y;
  const std::vector<ProgramOutput> outputs{{exp(sigmoid(normal)) + vector("bias", {17, 1, 1})}};
  const auto program = compile(graph, outputs, backend);
  const auto is_padded = [](const Instruction& instruction) {
    const Slot& slot = *instruction.outputs[0];
    return slot.layout.elements(slot.type.shape) > slot.type.shape.elements();
  };
  if (backend.info().name == "cpu") CHECK(std::ranges::count_if(program->instructions, is_padded) >= 4);
  VM vm(program, backend);
  Random random(1);
  const Tensor x = random.tensor({DType::float32, shape}, -1, 1);
  const Tensor ones = random.tensor({DType::float32, {17}}, 1, 1);
  const Tensor bias = random.tensor({DType::float32, {17, 1, 1}}, -1, 1);
  const Feed feeds[] = {{"x", x}, {"scale", ones}, {"shift", ones}, {"bias", bias}};
  check_steady("a run with padding", [&] { vm.run(feeds); });
}

TEST_CASE("a convolution of float64 allocates nothing") {
  Backend& backend = test_backend();
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 3, 16, 16}});
  const Node weights = graph.input("weights", {DType::float64, {4, 3, 3, 3}});
  const std::vector<ProgramOutput> outputs{{conv2d(x, weights)}};
  VM vm(compile(graph, outputs, backend), backend);
  Random random(1);
  const Tensor image = random.tensor(x.type(), -1, 1);
  const Tensor window = random.tensor(weights.type(), -1, 1);
  const Feed feeds[] = {{"x", image}, {"weights", window}};
  check_steady("a run of a convolution of float64", [&] { vm.run(feeds); });
}

}  // namespace plexaura::testing
