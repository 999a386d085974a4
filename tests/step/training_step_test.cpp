#include "core/step/training_step.h"

#include <doctest/doctest.h>
#include <utility>

#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/optimizer_steps.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/read_tail.h"

namespace plexaura::testing::training_step_test {

namespace {

const TensorType weights{DType::float32, {2, 1}};

using Names = std::vector<std::string>;

// Returns loss = mean (x w - t)^2, where w is the sum of these parameters, and the number of outputs above
// zero.
LossOutputs line(Graph& graph, std::int64_t samples, const Names& names = {"w"}) {
  const Node x = graph.input("x", {DType::float32, {samples, 2}});
  Node w = graph.parameter(names[0], weights);
  for (std::size_t i = 1; i < names.size(); ++i) w = w + graph.parameter(names[i], weights);
  const Node y = matmul(x, w);
  return {.loss = squared_error(y, graph.input("t", {DType::float32, {samples, 1}})),
          .metrics = {{.name = "above zero", .sum = sum(cast(gt(y, 0), DType::float32))},
                      {.name = "output", .mean = mean(y)}}};
}

struct Trained {
  explicit Trained(Strategy* strategy = nullptr, Names parameters = {"w"})
      : names(std::move(parameters)), in_use(strategy), step(placed(), store, in_use, 1) {
    const auto update = compile_update();
    for (const std::int64_t samples : {0, 2}) {
      Graph graph;
      const auto outputs = training_outputs(graph, line(graph, samples, names), store, samples);
      step.add_program(
          samples, true,
          compile(graph, outputs, test_backend(), {.placement = &store.placement(), .apply_updates = false}),
          update.get(), nullptr);
    }
    for (const std::string& name : names) store.write(name, Tensor::of<float>({2, 1}, {1, 2}));
  }

  std::shared_ptr<const Program> compile_update() const {
    Graph graph;
    const auto count = 16 * static_cast<std::int64_t>(names.size());
    const Node value = graph.arena_slice({ArenaKind::value, 0, 0, count}, DType::float32);
    const Node gradient = graph.arena_slice({ArenaKind::gradient, 0, 0, count}, DType::float32);
    const Node rate = graph.step_scalar(StepScalar::learning_rate, DType::float32);
    const Node loss_scale = graph.step_scalar(StepScalar::loss_scale, DType::float32);
    graph.update(value, sgd_step(value, gradient, {}, rate, {}, loss_scale).value);
    return compile(graph, {}, test_backend(), {.placement = &store.placement()});
  }

  Backend& placed() {
    Graph graph;
    const auto outputs = training_outputs(graph, line(graph, 2, names), store, 2);
    store.place(compile(graph, outputs, test_backend(), {.apply_updates = false})->placement, test_backend());
    return test_backend();
  }

  StepTicket run(std::int64_t samples, StepInputs inputs = {}) {
    const Tensor x =
        samples == 0 ? Tensor({DType::float32, {0, 2}}) : Tensor::of<float>({2, 2}, {1, 0, 0, 1});
    const Tensor t = samples == 0 ? Tensor({DType::float32, {0, 1}}) : Tensor::of<float>({2, 1}, {0, 0});
    const Feed feeds[] = {{"x", x}, {"t", t}};
    const MicroBatchInputs batch[] = {{feeds, samples, 0}};
    inputs.micro_batches = batch;
    if (inputs.global_samples == 1) inputs.global_samples = samples;
    inputs.learning_rate = 0.5;
    return last = step.run(inputs);
  }

  StepMetrics metrics() { return step.metrics(last); }
  std::vector<double> values() const { return store.read("w").to_doubles(); }

  std::vector<ParameterSpec> specs() const {
    std::vector<ParameterSpec> all;
    for (const std::string& name : names)
      all.push_back({name, weights, ParameterRole::trainable, Initialiser::ones()});
    return all;
  }

  Names names;
  ParameterStore store{specs()};
  StrategyInUse in_use;
  TrainingStep step;
  StepTicket last;
};

}  // namespace

TEST_CASE("a step is gradients, update and metrics") {
  Trained trained;
  trained.run(2);
  const StepMetrics metrics = trained.metrics();
  CHECK(metrics.loss == 2.5);  // (1 + 4) / 2
  CHECK(trained.metrics().sums[0] == 2);
  CHECK(trained.metrics().sums[1] == 3);
  CHECK(metrics.samples == 2);
  CHECK(!metrics.stop);
  CHECK(!metrics.failed);
  CHECK(trained.values() == std::vector<double>{0.5, 1});  // half of the way, as the slope is (1, 2)
  CHECK(trained.store.read_gradient("w").to_doubles() == std::vector<double>{1, 2});
}

TEST_CASE("gradients are this rank's share of the whole step's mean") {
  Trained trained;
  trained.run(2, {.global_samples = 8});
  CHECK(trained.store.read_gradient("w").to_doubles() == std::vector<double>{0.25, 0.5});
  CHECK(trained.metrics().samples == 2);
}

TEST_CASE("the loss scale reaches gradients, and neither the loss nor the weights") {
  Trained trained;
  trained.run(2, {.loss_scale = 4});
  CHECK(trained.store.read_gradient("w").to_doubles() == std::vector<double>{4, 8});
  CHECK(trained.values() == std::vector<double>{0.5, 1});
  CHECK(trained.metrics().loss == 2.5);
}

TEST_CASE("a rank without samples adds nothing and is finite") {
  Trained trained;
  trained.run(2);
  trained.run(0, {.global_samples = 2});
  const StepMetrics metrics = trained.metrics();
  CHECK(metrics.samples == 0);
  CHECK(metrics.loss == 0);
  CHECK(trained.metrics().sums[0] == 0);
  CHECK(trained.metrics().sums[1] == 0);
  CHECK(trained.store.read_gradient("w").to_doubles() == std::vector<double>{0, 0});
  CHECK(trained.values() == std::vector<double>{0.5, 1});
}

TEST_CASE("a wish to stop is shown in the tail") {
  Trained trained;
  trained.run(2, {.stop = true});
  CHECK(trained.metrics().stop);
  trained.run(2);
  CHECK(!trained.metrics().stop);
}

TEST_CASE("a failure of this rank's own work is shown over zeroed gradients, and told to the caller") {
  Trained trained;
  trained.run(2);
  const auto before = trained.values();
  trained.run(2, {.stop = true, .failure = std::make_exception_ptr(UserError("no batch"))});
  CHECK(user_error([&] { trained.metrics(); }) == "no batch");
  CHECK(read_tail(trained.store, TailSlot::failed) == 1);
  CHECK(read_tail(trained.store, TailSlot::stop) == 1);
  CHECK(read_tail(trained.store, TailSlot::samples) == 0);
  CHECK(trained.store.read_gradient("w").to_doubles() == std::vector<double>{0, 0});
  CHECK(trained.values() == before);
  trained.run(2);  // the next step is not affected
  CHECK(!trained.metrics().failed);
}

TEST_CASE("where a rank fails and its strategy fails after it, the first failure is told") {
  struct BrokenLine final : Strategy, GradientSum {
    StrategyParts parts() override { return {.gradients = this}; }
    void gradients_ready(std::size_t, Event&) override {}
    UpdateAnswer before_update(std::size_t) override { throw UserError("the line is broken"); }
  } strategy;
  Trained trained(&strategy);
  CHECK(user_error([&] { trained.run(2, {.failure = std::make_exception_ptr(UserError("no batch"))}); }) ==
        "no batch");
  CHECK(user_error([&] { trained.run(2); }) == "the line is broken");
}

TEST_CASE("a failure behind the first buckets leaves these to the strategy, and zeroes the rest") {
  // Fails once when the second bucket is final.
  struct FailsOnce final : Strategy, GradientSum {
    StrategyParts parts() override { return {.gradients = this}; }
    UpdateAnswer before_update(std::size_t) override { return {}; }
    void gradients_ready(std::size_t bucket, Event&) override {
      if (bucket == 1 && !std::exchange(failed, true)) throw UserError("no room");
    }
    bool failed = false;
  } strategy;
  Trained trained(&strategy, {"first", "second"});
  REQUIRE(trained.step.border().buckets().size() == 3);  // one for each parameter, and the tail
  const std::string& announced = trained.store.placement().entries[0].name;
  trained.run(2);
  CHECK(user_error([&] { trained.metrics(); }) == "no room");
  for (const std::string name : {"first", "second"}) {
    CAPTURE(name);
    const std::vector<double> gradient = trained.store.read_gradient(name).to_doubles();
    CHECK((gradient == std::vector<double>{0, 0}) == (name != announced));
  }
  CHECK(read_tail(trained.store, TailSlot::failed) == 1);
  CHECK(read_tail(trained.store, TailSlot::samples) == 0);
}

TEST_CASE("a size that nothing was compiled for is our own fault, and fails like any work") {
  Trained trained;
  Tensor x({DType::float32, {3, 2}});
  Tensor t({DType::float32, {3, 1}});
  const Feed feeds[] = {{"x", x}, {"t", t}};
  const MicroBatchInputs batch[] = {{feeds, 3, 0}};
  trained.last = trained.step.run({.micro_batches = batch, .global_samples = 3});
  CHECK(error_text<InternalError>([&] { trained.metrics(); }).find("3 samples") != std::string::npos);
}

TEST_CASE("the number of the step is known at the border, and the store's version rises with each") {
  Trained trained;
  const std::uint64_t version = trained.store.version();
  trained.run(2, {.step = 17});
  CHECK(trained.step.border().step() == 17);
  CHECK(trained.store.version() > version);
}

TEST_CASE("a step leaves of a buffer what its update adds, or else its next value, times the share") {
  Graph graph;
  const TensorType one{DType::float32, {1}};
  const Node x = graph.input("x", {DType::float32, {2, 1}});
  const Node added = mean(x, {.axes = {0}});
  const Node next = added + graph.buffer("mixed", one) * 0.5;
  graph.update(graph.buffer("seen", one), graph.buffer("seen", one) + added);
  graph.update(graph.buffer("before", one), added + graph.buffer("before", one));
  graph.update(graph.buffer("mixed", one), next);
  graph.update(graph.buffer("count", one), graph.buffer("count", one) + 1);
  const ParameterStore empty(std::vector<ParameterSpec>{});
  const auto outputs = training_outputs(graph, {mean(x)}, empty, 2);
  const auto factor_of = [&](std::size_t output) {
    return graph.record(outputs[output].node.id()).inputs[1];
  };
  for (const std::size_t output : {0, 1}) CHECK(factor_of(output) == added.value());
  CHECK(factor_of(2) == next.value());
  CHECK(outputs[3].node.type() == one);
  CHECK(replaced_buffers(graph) == std::set<std::string>{"mixed"});
}

TEST_CASE("a metric that cannot be reported is refused by its name") {
  const ParameterStore store({{"w", weights, ParameterRole::trainable, Initialiser::ones()}});
  const auto refusal = [&](const std::function<std::vector<Metric>(const Node&)>& metrics) {
    Graph graph;
    LossOutputs outputs = line(graph, 2);
    outputs.metrics = metrics(outputs.loss);
    return user_error([&] { training_outputs(graph, outputs, store, 2); });
  };
  CHECK(refusal([](const Node& loss) {
          return std::vector<Metric>{{"a", loss}, {"a", loss}};
        }) == "a metric is named 'a'; give each a name of its own");
  CHECK(refusal([](const Node&) { return std::vector<Metric>{{"a"}}; }) ==
        "the metric 'a' needs a mean or a sum, and not both");
  CHECK(refusal([](const Node& loss) {
          return std::vector<Metric>{{"a", cast(loss, DType::float64)}};
        }).starts_with("the metric 'a' is float64[] and must be a scalar of float32"));
  CHECK(refusal([](const Node& loss) {
          std::vector<Metric> many;
          for (std::size_t i = 0; i <= most_metrics; ++i) many.push_back({std::to_string(i), loss});
          return many;
        }) == "the model reports 13 metrics; report at most 12");
  CHECK(most_metrics == 12);
  Graph other;
  const Node foreign = other.input("x", {DType::float32, {}});
  CHECK(refusal([&](const Node&) {
          return std::vector<Metric>{{"a", foreign}};
        }) == "the metric 'a' belongs to another graph than the loss; build both in one");
}

TEST_CASE("sums for validation that cannot be added up are refused") {
  const ParameterStore store({{"w", weights, ParameterRole::trainable, Initialiser::ones()}});
  const auto refusal = [&](const std::function<ValidationSums(const Node&)>& sums) {
    Graph graph;
    LossOutputs outputs = line(graph, 2);
    outputs.validation = sums(outputs.loss);
    return user_error([&] { training_outputs(graph, outputs, store, 2); });
  };
  const auto nothing = [](std::span<const double>, double) {
    return std::vector<std::pair<std::string, double>>{};
  };
  CHECK(
      refusal([&](const Node&) { return ValidationSums{.values = nothing}; }) ==
      "LossOutputs::validation has a function of values and no sums that it could be given; set the node of "
      "the sums");
  CHECK(refusal([&](const Node& loss) { return ValidationSums{.sums = cast(loss, DType::int64)}; }) ==
        "the sums for validation are int64[] and must be floating; cast() them");
  Graph other;
  const Node foreign = other.input("x", {DType::float32, {}});
  CHECK(refusal([&](const Node&) { return ValidationSums{.sums = foreign}; }) ==
        "the sums for validation belong to another graph than the loss; build both in one");
}

TEST_CASE("a trainable parameter that the loss does not use is named, and so is a loss of another dtype") {
  ParameterStore store({{"w", weights, ParameterRole::trainable, Initialiser::ones()},
                        {"idle", weights, ParameterRole::trainable, Initialiser::ones()}});
  Graph graph;
  CHECK(user_error([&] { training_outputs(graph, line(graph, 2), store, 2); }).find("'idle'") !=
        std::string::npos);
  ParameterStore doubles({{"w", {DType::float64, {2, 1}}, ParameterRole::trainable, Initialiser::ones()}});
  Graph other;
  CHECK(user_error([&] { training_outputs(other, line(other, 2), doubles, 2); }).find("cast()") !=
        std::string::npos);
  const ParameterStore halves(
      {{"w", {DType::float16, {2, 1}}, ParameterRole::trainable, Initialiser::ones()}});
  CHECK(user_error([&] {
          training_outputs(other, {.loss = other.constant(Tensor::scalar(1.0))}, halves, 2);
        }).starts_with("the parameters of the store are float16; training needs float32 or float64"));
  Graph third;
  CHECK(user_error([&] {
          training_outputs(graph, line(third, 2), store, 2);
        }).starts_with("the loss belongs to another graph"));
}

}  // namespace plexaura::testing::training_step_test
