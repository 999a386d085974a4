// Values, gradients, optimizer state and the shadow of the values may each have their own dtype. A step is
// computed in the dtype of the values. Contents of the other arenas are cast when they are read or written,
// and are rounded only there.

#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/read_tail.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::arena_types_test {

namespace {

constexpr std::int64_t samples = 4;
constexpr std::int64_t wide = 6;
constexpr std::int64_t narrow = 3;
const TensorType weights{DType::float32, {wide, narrow}};
const TensorType seen_type{DType::float32, {wide}};

const ArenaTypes mixed{DType::float32, DType::bfloat16, DType::float64, DType::bfloat16};
const ArenaTypes wider{DType::float32, DType::float64, DType::float64, DType::float64};

std::vector<ParameterSpec> specs() {
  return {{"w", weights, ParameterRole::trainable, Initialiser::ones()},
          {"bias", {DType::float32, {narrow}}, ParameterRole::trainable, Initialiser::zeros()},
          {"seen", seen_type, ParameterRole::buffer, Initialiser::zeros()}};
}

// A linear model with a running mean of its inputs. In float32 all numbers of a few steps are exact.
LossOutputs linear(Graph& graph, const Node& x, const Node& t) {
  const Node seen = graph.buffer("seen", seen_type);
  graph.update(seen, seen * 0.5 + mean(x, {.axes = {0}}) * 0.5);
  const Node y =
      matmul(x, graph.parameter("w", weights)) + graph.parameter("bias", {DType::float32, {narrow}});
  return {sum(square(y - t)) * (1.0 / samples)};
}

LossOutputs curved(Graph& graph, const Node& x, const Node& t) {
  const LossOutputs outputs = linear(graph, x, t);
  return {outputs.loss + sum(tanh(graph.parameter("w", weights)))};
}

Batch some_batch(std::uint64_t seed = 1) {
  return {whole_numbers({DType::float32, {samples, wide}}, seed),
          whole_numbers({DType::float32, {samples, narrow}}, seed + 1)};
}

double rounded(double value) { return static_cast<float>(bfloat16(static_cast<float>(value))); }

// The linear model in plain loops, with momentum 0.5 and gradients rounded to bfloat16.
struct Reference {
  std::vector<double> w = std::vector<double>(wide * narrow, 1);
  std::vector<double> bias = std::vector<double>(narrow, 0);
  std::vector<double> seen = std::vector<double>(wide, 0);
  std::vector<double> momentum = std::vector<double>(wide * narrow, 0);
  std::vector<double> momentum_of_bias = std::vector<double>(narrow, 0);

  void step(const Batch& batch, double rate) {
    const auto x = batch.x.to_doubles();
    const auto t = batch.t.to_doubles();
    std::vector<double> gradient(w.size(), 0);
    std::vector<double> of_bias(narrow, 0);
    for (std::size_t i = 0; i < samples; ++i)
      for (std::size_t k = 0; k < narrow; ++k) {
        double y = bias[k];
        for (std::size_t j = 0; j < wide; ++j) y += x[i * wide + j] * w[j * narrow + k];
        const double slope = 2 * (y - t[i * narrow + k]) / samples;
        of_bias[k] += slope;
        for (std::size_t j = 0; j < wide; ++j) gradient[j * narrow + k] += x[i * wide + j] * slope;
      }
    update(w, momentum, gradient, rate);
    update(bias, momentum_of_bias, of_bias, rate);
    for (std::size_t j = 0; j < wide; ++j) {
      double mean = 0;
      for (std::size_t i = 0; i < samples; ++i) mean += x[i * wide + j] / samples;
      seen[j] = 0.5 * seen[j] + 0.5 * mean;
    }
  }

  static void update(std::vector<double>& value, std::vector<double>& momentum,
                     const std::vector<double>& gradient, double rate) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      momentum[i] = 0.5 * momentum[i] + rounded(gradient[i]);
      value[i] -= rate * momentum[i];
    }
  }
};

void check_shadow(const ParameterStore& store) {
  for (const ParameterSpec& spec : store.specs()) {
    CAPTURE(spec.name);
    CHECK(store.read_shadow(spec.name) == store.read(spec.name).cast(*store.types().shadow));
  }
}

}  // namespace

TEST_CASE("bfloat16 gradients and shadow, float64 state: the bits of a plain reference") {
  SmallTraining training(test_backend(), specs(), linear, some_batch(),
                         {.optimizer = {.momentum = 0.5}, .types = mixed});
  ParameterStore& store = training.store();
  Reference reference;
  for (std::uint64_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    const StepMetrics metrics = training.step(some_batch(i), 1.0 / 64);
    CHECK(metrics.samples == samples);
    reference.step(some_batch(i), 1.0 / 64);
    CHECK(store.read("w").to_doubles() == reference.w);
    CHECK(store.read("bias").to_doubles() == reference.bias);
    CHECK(store.read("seen").to_doubles() == reference.seen);
    CHECK(store.read_state(0, "w").to_doubles() == reference.momentum);
    check_shadow(store);
  }
  CHECK(store.read_gradient("w").dtype() == DType::bfloat16);
  CHECK(store.read_gradient("seen").dtype() ==
        DType::float32);  // the dtype of values and not of gradients, because it is the change of a value
  CHECK(store.read_state(0, "w").dtype() == DType::float64);
  CHECK(read_tail(store, TailSlot::samples) == samples);
}

TEST_CASE("wider arenas change no bit") {
  for (const OptimizerSpec& optimizer :
       {OptimizerSpec{.momentum = 0.9, .nesterov = true},
        {.kind = OptimizerSpec::adamw, .weight_decay = 0.1},
        {.kind = OptimizerSpec::lars, .momentum = 0.9, .weight_decay = 0.1},
        {.kind = OptimizerSpec::lamb, .weight_decay = 0.1},
        {.kind = OptimizerSpec::rmsprop, .momentum = 0.9, .centered = true}}) {
    SmallTraining plain(test_backend(), specs(), curved, some_batch(), {.optimizer = optimizer});
    SmallTraining other(test_backend(), specs(), curved, some_batch(),
                        {.optimizer = optimizer, .types = wider});
    for (int i = 0; i < 3; ++i)
      CHECK(other.step(some_batch(), 0.05).loss == plain.step(some_batch(), 0.05).loss);
    check_same_values(other.store(), plain.store());
    for (std::int64_t state = 0; state < plain.store().states(); ++state)
      CHECK(other.store().read_state(state, "w").to_doubles() ==
            plain.store().read_state(state, "w").to_doubles());
    check_shadow(other.store());
  }
}

TEST_CASE("ranks sum each bucket in its dtype") {
  const Batch whole = some_batch();
  SmallTraining alone(test_backend(), specs(), linear, whole, {});
  alone.step(whole, 1.0 / 64);
  std::vector<Tensor> expected;
  for (const ParameterSpec& spec : specs()) expected.push_back(alone.store().read(spec.name));
  ThreadRanks ranks(2);
  ranks.run([&](Collective& collective) {
    const std::unique_ptr<Backend> backend = open_backend(test_backend().info().name);
    SummingStrategy strategy(collective);
    const Batch mine = part(whole, 2L * collective.rank(), 2);
    const auto halved = [](Graph& graph, const Node& x, const Node& t) -> LossOutputs {
      return {linear(graph, x, t).loss * 2};  // makes up for half as many samples
    };
    SmallTraining run(*backend, specs(), halved, mine, {.strategy = &strategy, .sizes = {2}, .types = wider});
    strategy.begin(run.steps().border());
    run.launch(std::span(&mine, 1), 1.0 / 64, samples, 2L * collective.rank());
    CHECK(run.metrics().samples == samples);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(run.store().read(specs()[i].name) == expected[i]);
    check_shadow(run.store());
  });
}

TEST_CASE("what is written from outside is in the shadow, and a program can read it there") {
  SmallTraining training(test_backend(), specs(), linear, some_batch(), {.types = mixed});
  ParameterStore& store = training.store();
  const Tensor third = Tensor::scalar(1.0F / 3).cast(DType::float32);
  Tensor value(weights);
  for (float& element : value.as<float>()) element = third.as<float>()[0];
  store.write("w", value);
  check_shadow(store);

  Graph graph;
  const std::int64_t count = store.placement().count(ParameterRole::trainable);
  const Node shadow = graph.arena_slice({ArenaKind::shadow, 0, 0, count}, DType::bfloat16);
  const std::vector<ProgramOutput> outputs{{.node = sum(cast(shadow, DType::float32))}};
  const auto program = compile(graph, outputs, test_backend(), {.placement = &store.placement()});
  CHECK(program->first_use(0, count) == 0);
  VM vm(program, test_backend(), {.store = &store});
  vm.run({});
  CHECK(vm.output().to_doubles()[0] == doctest::Approx(wide * narrow * rounded(1.0 / 3)).epsilon(1e-6));

  SmallTraining other(test_backend(), specs(), linear, some_batch(), {.types = mixed});
  WeightsImmigration& border = other.steps().border();
  std::ranges::copy(training.steps().border().fetch_values(), border.fetch_values().begin());
  border.store_values();
  CHECK(other.value("w") == value);
  check_shadow(other.store());
}

}  // namespace plexaura::testing::arena_types_test
