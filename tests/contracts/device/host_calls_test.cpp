// The host computes an op for which a device has no kernel, with the op's reference kernel. The results have
// the bits of the portable backend, and the rest of the program does not change.

#include <algorithm>
#include <doctest/doctest.h>
#include <thread>

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/gather.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "models/config/config.h"
#include "models/zoo/model.h"
#include "tests/contracts/device/counting_backend.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/contracts/training/small_training.h"
#include "tests/contracts/training/two_layers.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::host_calls_test {

namespace {

const TensorType rows{DType::float32, {4, 6}};

std::unique_ptr<Backend> far_without(const std::string& ops, const char* lazy = "0") {
  return open_backend("far", {{"lacks", ops}, {"lazy", lazy}, {"regions", "0"}});
}

std::int64_t host_calls_of(const std::vector<Instruction>& instructions) {
  return std::ranges::count_if(instructions, [](const Instruction& instruction) {
    return std::holds_alternative<HostWork>(instruction.work);
  });
}

// Parameters of a net with a convolution, batch norm, a softmax, and a running mean of the inputs.
const std::vector<ParameterSpec> net_specs{
    {"conv", {DType::float32, {5, 3, 3, 3}}, ParameterRole::trainable, Initialiser::uniform(0.5)},
    {"scale", {DType::float32, {5}}, ParameterRole::trainable, Initialiser::ones()},
    {"shift", {DType::float32, {5}}, ParameterRole::trainable, Initialiser::zeros()},
    {"out", {DType::float32, {20, 2}}, ParameterRole::trainable, Initialiser::uniform(0.5)},
    {"seen", {DType::float32, {3, 4, 4}}, ParameterRole::buffer, Initialiser::zeros()}};

LossOutputs net(Graph& graph, const Node& x, const Node& t) {
  const auto parameter = [&](std::size_t i) { return graph.parameter(net_specs[i].name, net_specs[i].type); };
  const Node seen = graph.buffer("seen", net_specs[4].type);
  graph.update(seen, seen * 0.5 + mean(x, {.axes = {0}}) * 0.5);
  const Node normal = batch_norm(conv2d(x, parameter(0)), parameter(1), parameter(2)).y;
  return {squared_error(softmax(matmul(flatten(relu(normal)), parameter(3)), 1), t)};
}

Batch net_batch(std::int64_t samples) {
  return {whole_numbers({DType::float32, {samples, 3, 4, 4}}, 3, 2),
          whole_numbers({DType::float32, {samples, 2}}, 4, 2)};
}

void check_trains_as_portable(Backend& backend, bool micro_batches) {
  const Batch batch = net_batch(8);
  SmallTraining::Options options{.optimizer = {.momentum = 0.9}};
  options.micro_batches = micro_batches;
  SmallTraining here(backend, net_specs, net, batch, options);
  SmallTraining expected(oracle(), net_specs, net, batch, options);
  const std::vector<Batch> halves{part(batch, 0, 4), part(batch, 4, 4)};
  const std::span<const Batch> step(halves.data(), micro_batches ? 2 : 1);
  for (int i = 0; i < 3; ++i)
    for (SmallTraining* training : {&here, &expected}) {
      training->launch(step, 0.1);
      training->metrics();
    }
  check_same_values(here.store(), expected.store());
}

// Sums each bucket in a thread of its own as soon as the bucket is final, while the program continues.
class Overlapping final : public Strategy, public GradientSum {
 public:
  explicit Overlapping(Collective& ranks) : ranks_(ranks) {}
  ~Overlapping() override {
    if (worker_.joinable()) worker_.join();
  }
  StrategyParts parts() override { return {.gradients = this}; }
  void begin(WeightsImmigration& border) override { border_ = &border; }
  void gradients_ready(std::size_t bucket, Event& final) override {
    if (worker_.joinable()) worker_.join();
    worker_ = std::thread([this, bucket, &final] {
      final.wait();
      ranks_.sum(border_->buckets()[bucket].dtype, border_->gradients(bucket).data(),
                 border_->buckets()[bucket].count, std::to_string(bucket));
    });
  }
  UpdateAnswer before_update(std::size_t) override {
    if (worker_.joinable()) worker_.join();
    return {};
  }

 private:
  Collective& ranks_;
  WeightsImmigration* border_ = nullptr;
  std::thread worker_;
};

}  // namespace

TEST_CASE("a net trains to the bits of the portable kernels, whichever ops a device lacks") {
  for (const char* const lacks :
       {"*", "softmax", "conv2d+matmul", "conv2d_weight_grad+moments", "sgd_step+add+sum"})
    for (const char* const lazy : {"0", "1"})
      for (const bool micro_batches : {false, true}) {
        CAPTURE(lacks);
        CAPTURE(lazy);
        CAPTURE(micro_batches);
        const auto backend = far_without(lacks, lazy);
        check_trains_as_portable(*backend, micro_batches);
      }
}

TEST_CASE("exchanges that began before a host call within the backward pass go on meanwhile") {
  const Batch batch = two_layers::batch(1, 2);
  // The gradient of "second" is final before the gradient of tanh is computed.
  const auto train = [&](Backend& backend, Collective& ranks) {
    Overlapping strategy(ranks);
    SmallTraining training(backend, two_layers::specs(), two_layers::model, batch,
                           {.strategy = &strategy, .collective = &ranks});
    strategy.begin(training.steps().border());
    for (int i = 0; i < 3; ++i) training.step(batch, 0.1);
    return std::vector<Tensor>{training.value("first"), training.value("second")};
  };
  for (const char* const lazy : {"0", "1"}) {
    CAPTURE(lazy);
    ThreadRanks ranks(2);
    ranks.run([&](Collective& collective) {
      const auto backend = far_without("tanh+square+mul+sub", lazy);
      const auto portable = open_backend("portable");
      const std::vector<Tensor> values = train(*backend, collective);
      const std::vector<Tensor> expected = train(*portable, collective);
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == expected[i]);
    });
  }
}

TEST_CASE("a host call is its own point between two recordings") {
  const auto far = far_without("tanh");
  CountingBackend backend(*far);
  Graph graph;
  const Node x = graph.input("x", rows);
  const std::vector<ProgramOutput> outputs{{.node = exp(tanh(x * 2))}};
  const auto program = compile(graph, outputs, backend);
  CHECK(host_calls_of(program->instructions) == 1);
  VM vm(program, backend);
  const Tensor value = whole_numbers(rows, 1);
  std::vector<Tensor> results;
  for (int run = 0; run < 4; ++run) {
    vm.run({{"x", value}});
    results.push_back(vm.output());
  }
  CHECK(backend.counts().recordings == 4);  // two for each slot
  CHECK(results.front() == results.back());
}

TEST_CASE("a host call is in no prologue, and what follows it neither") {
  const auto backend = far_without("tanh");
  ParameterStore store({{"w", rows, ParameterRole::trainable, Initialiser::uniform(1)}});
  Graph graph(Mode::inference);
  const Node w = graph.parameter("w", rows);
  const std::vector<ProgramOutput> outputs{{.node = graph.input("x", rows) + square(tanh(w * 2))}};
  const auto program = compile(graph, outputs, *backend);
  CHECK(program->prologue.size() == 1);
  CHECK(host_calls_of(program->prologue) == 0);
  CHECK(host_calls_of(program->instructions) == 1);
  store.place(program->placement, *backend);
  VM vm(program, *backend, {.store = &store});
  vm.run({{"x", whole_numbers(rows, 1)}});
  const Tensor before = vm.output();
  store.write("w", whole_numbers(rows, 2));
  vm.run({{"x", whole_numbers(rows, 1)}});
  CHECK(!(vm.output() == before));
}

TEST_CASE("a host call of a constant is not folded") {
  const auto backend = far_without("tanh");
  Graph graph;
  const Node x = graph.input("x", rows);
  const std::vector<ProgramOutput> outputs{{.node = x + tanh(graph.constant(whole_numbers(rows, 1)))}};
  CHECK(host_calls_of(compile(graph, outputs, *backend)->instructions) == 1);
}

TEST_CASE("the text and the hash of a program name its host calls") {
  Graph graph;
  const Node x = graph.input("x", rows);
  const std::vector<ProgramOutput> outputs{{.node = softmax(x, 1) * 2}};
  const auto backend = far_without("softmax");
  const auto program = compile(graph, outputs, *backend);
  const std::string text = program->to_text();
  CAPTURE(text);
  CHECK(text.find("pass bind: 1 kernels, 0 of them reorders, 0 in the prologue, 1 ops on the host\n") !=
        std::string::npos);
  CHECK(text.find("[on the host, 192 bytes cross]") != std::string::npos);
  CHECK(program->ops_on_host() == std::set<std::string>{"softmax"});
  const auto whole = far_without("");
  const auto without = compile(graph, outputs, *whole);
  CHECK(without->ops_on_host().empty());
  CHECK(without->plan_hash() != program->plan_hash());
}

TEST_CASE("strict refuses a host call, and names the op, its line and what to do") {
  const auto backend = far_without("tanh");
  Graph graph;
  const int line = __LINE__ + 1;
  const std::vector<ProgramOutput> outputs{{.node = tanh(graph.input("x", rows))}};
  const std::string text = user_error([&] { compile(graph, outputs, *backend, {.strict = true}); });
  CAPTURE(text);
  CHECK(text.find("tanh %1 of ") == 0);
  CHECK(text.find("host_calls_test.cpp:" + std::to_string(line)) != std::string::npos);
  CHECK(text.find("the backend 'far' has no kernel for 'tanh'") != std::string::npos);
  CHECK(text.find("set strict to false") != std::string::npos);
  CHECK_NOTHROW(compile(graph, outputs, *backend));
}

TEST_CASE("an error of a host call bears the name of its instruction") {
  const auto backend = far_without("gather");
  Graph graph;
  const Node index = graph.input("index", {DType::int64, {2}});
  const std::vector<ProgramOutput> outputs{{.node = gather(graph.input("x", rows), index)}};
  VM vm(compile(graph, outputs, *backend), *backend);
  const Tensor wrong = Tensor::of<std::int64_t>({2}, {1, 9});
  const Tensor right = Tensor::of<std::int64_t>({2}, {1, 3});
  const Tensor x = whole_numbers(rows, 1);
  const std::string text = user_error([&] { vm.run({{"x", x}, {"index", wrong}}); });
  CAPTURE(text);
  CHECK(text.find("gather %2 of ") == 0);
  vm.run({{"x", x}, {"index", right}});
  CHECK(vm.output().shape() == Shape{2, 6});
}

TEST_CASE("the watch looks at what the host computed") {
  const auto backend = far_without("log");
  Graph graph;
  const std::vector<ProgramOutput> outputs{{.node = square(log(graph.input("x", rows)))}};
  VM vm(compile(graph, outputs, *backend), *backend, {.watch = true});
  const std::string text = user_error([&] { vm.run({{"x", Tensor(rows)}}); });
  CAPTURE(text);
  CHECK(text.find("log %1 of ") == 0);
}

TEST_CASE("a host call that fails on one rank ends all with its error") {
  const TensorType table{DType::float32, {4, 2}};
  const auto model = [&](Graph& graph, const Node& x, const Node& t) -> LossOutputs {
    return {squared_error(gather(graph.parameter("table", table), x), t)};
  };
  const std::vector<ParameterSpec> specs{{"table", table, ParameterRole::trainable, Initialiser::uniform(1)}};
  ThreadRanks ranks(2);
  const std::string text = user_error([&] {
    ranks.run([&](Collective& collective) {
      const auto backend = far_without("gather");
      SummingStrategy strategy(collective);
      Batch batch{Tensor::of<std::int64_t>({2}, {1, 2}), whole_numbers({DType::float32, {2, 2}}, 1)};
      SmallTraining training(*backend, specs, model, batch,
                             {.strategy = &strategy, .collective = &collective, .sizes = {2}});
      strategy.begin(training.steps().border());
      training.step(batch, 0.1);
      if (collective.rank() == 1) batch.x = Tensor::of<std::int64_t>({2}, {1, 7});
      training.step(batch, 0.1);
    });
  });
  CAPTURE(text);
  CHECK(text.find("gather %") != std::string::npos);
}

TEST_CASE("no model of the zoo needs a host call") {
  const struct {
    const char* yaml;
    Shape sample;
    std::int64_t classes;
  } models[] = {{"iris.yaml", {4}, 3},
                {"mnist_mlp.yaml", {1, 28, 28}, 10},
                {"mnist_cnn.yaml", {1, 28, 28}, 10},
                {"resnet50.yaml", {3, 64, 64}, 10}};
  for (const auto& [yaml, sample, classes] : models) {
    CAPTURE(yaml);
    const Config config = Config::load(std::string(PLEXAURA_SOURCE) + "/models/" + yaml);
    auto model = make_model(config.section("model"), sample, classes, {});
    Graph graph;
    std::vector<std::int64_t> extents{2};
    extents.insert(extents.end(), sample.extents().begin(), sample.extents().end());
    const Node samples = graph.input("samples", {DType::float32, Shape(extents)});
    const LossOutputs outputs =
        build_loss(*model, (*model)(samples), graph.input("labels", {DType::int64, {2}}));
    const ParameterStore store = make_store(*model, DType::float32, 1);
    const std::vector<ProgramOutput> step = training_outputs(graph, outputs, store, 2);
    CHECK_NOTHROW(compile(graph, step, test_backend(), {.apply_updates = false, .strict = true}));
  }
}

}  // namespace plexaura::testing::host_calls_test
