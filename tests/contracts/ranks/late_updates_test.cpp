// A strategy may delay the update of a bucket until the next step needs it, so that buckets are exchanged
// during the forward pass of that step. The results have the same bits, and no reader sees weights before
// their update.

#include <doctest/doctest.h>
#include <exception>
#include <optional>

#include "core/base/error.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "tests/contracts/device/counting_backend.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::late_updates_test {

namespace {

const TensorType first{DType::float32, {6, 5}};
const TensorType second{DType::float32, {5, 4}};
const TensorType third{DType::float32, {4, 2}};

LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  const Node a = tanh(matmul(x, graph.parameter("first", first)));
  const Node b = tanh(matmul(a, graph.parameter("second", second)));
  return {squared_error(matmul(b, graph.parameter("third", third)), t)};
}

std::vector<ParameterSpec> specs() {
  return {{"first", first, ParameterRole::trainable, Initialiser::uniform(0.5)},
          {"second", second, ParameterRole::trainable, Initialiser::uniform(0.5)},
          {"third", third, ParameterRole::trainable, Initialiser::uniform(0.5)}};
}

Batch some_batch() {
  return {whole_numbers({DType::float32, {4, 6}}, 1), whole_numbers({DType::float32, {4, 2}}, 2)};
}

using Calls = std::vector<std::string>;

// Records every call. The buckets are those of third, second, first, and the tail.
class Late final : public Strategy, public GradientSum {
 public:
  StrategyParts parts() override { return {.gradients = this, .updates_late = true}; }
  void gradients_ready(std::size_t bucket, Event&) override {
    calls.push_back("ready " + std::to_string(bucket));
  }
  UpdateAnswer before_update(std::size_t bucket) override {
    if (bucket == fails_at) throw DeviceError("no sum");
    calls.push_back("update " + std::to_string(bucket));
    if (counted != nullptr) launches.push_back(counted->counts().launches);
    return {};
  }
  void give_up() noexcept override { calls.emplace_back("give up"); }
  Calls take() { return std::exchange(calls, {}); }

  Calls calls;
  std::optional<std::size_t> fails_at;
  const CountingBackend* counted = nullptr;
  std::vector<std::int64_t> launches;  // number of launches before each update
};

const Calls step_alone{"ready 0", "ready 1", "ready 2", "ready 3", "update 3"};
const Calls before{"update 2", "update 1", "update 0"};

Calls operator+(Calls calls, const Calls& more) {
  calls.insert(calls.end(), more.begin(), more.end());
  return calls;
}

// Runs a step on the batch. A rank with a failure has no batch.
StepTicket run(SmallTraining& training, std::int64_t step, bool ends_epoch, std::exception_ptr failure = {}) {
  const Batch batch = some_batch();
  const std::vector<Feed> feeds{{"x", batch.x}, {"t", batch.t}};
  const MicroBatchInputs micro_batch[] = {{feeds, 4, 0}};
  return training.steps().run({.micro_batches = micro_batch,
                               .global_samples = 4,
                               .step = step,
                               .ends_epoch = ends_epoch,
                               .learning_rate = 0.05,
                               .failure = std::move(failure)});
}

}  // namespace

TEST_CASE("late updates are asked for where the next step first reads the weights") {
  CountingBackend backend(test_backend());
  Late strategy;
  strategy.counted = &backend;
  SmallTraining training(backend, specs(), model, some_batch(), {.strategy = &strategy});
  training.step(some_batch(), 0.05);
  CHECK(strategy.take() == step_alone);
  strategy.launches.clear();
  training.step(some_batch(), 0.05);
  CHECK(strategy.take() == before + step_alone);
  // Between two of these points are the update of a bucket, and the computation that needs it.
  if (test_backend().record([] {}) == nullptr)
    for (std::size_t i = 0; i < 3; ++i) CHECK(strategy.launches[i + 1] - strategy.launches[i] >= 2);
}

TEST_CASE("a bucket is touched where its weights are read or its gradients written, whichever comes first") {
  Late strategy;
  const SmallTraining training(test_backend(), specs(), model, some_batch(), {.strategy = &strategy});
  const Program& program = training.gradients(4);
  const auto touch = [&](std::size_t bucket) {
    const Bucket slice = make_buckets(program.placement, 1)[bucket];
    return program.first_touch(slice.offset, slice.offset + slice.count);
  };
  CHECK(touch(2) < touch(1));
  CHECK(touch(1) < touch(0));
  // The program reads no tail, but writes it.
  CHECK(touch(3) < program.instructions.size());
  CHECK(program.first_use(program.placement.tail_offset(), program.placement.gradient_count()) ==
        program.instructions.size());
}

TEST_CASE("late updates give the same bits, with any optimizer and with micro-batches") {
  using enum OptimizerSpec::Kind;
  for (const OptimizerSpec& optimizer :
       {OptimizerSpec{.kind = sgd, .momentum = 0.9}, OptimizerSpec{.kind = adam}, OptimizerSpec{.kind = lamb},
        OptimizerSpec{.kind = adagrad}})
    for (const bool halves : {false, true}) {
      CAPTURE(optimizer_name(optimizer));
      CAPTURE(halves);
      Late strategy;
      const Batch batch = some_batch();
      const std::vector<Batch> parts =
          halves ? std::vector{part(batch, 0, 2), part(batch, 2, 2)} : std::vector{batch};
      const SmallTraining::Options options{
          .optimizer = optimizer, .sizes = {halves ? 2 : 4}, .micro_batches = halves};
      SmallTraining plain(test_backend(), specs(), model, batch, options);
      SmallTraining::Options with_strategy = options;
      with_strategy.strategy = &strategy;
      SmallTraining late(test_backend(), specs(), model, batch, with_strategy);
      for (int step = 0; step < 4; ++step) {
        late.launch(parts, 0.05);
        plain.launch(parts, 0.05);
        CHECK(late.metrics().loss == plain.metrics().loss);
      }
      late.steps().await_weights();
      check_same_values(late.store(), plain.store());
    }
}

TEST_CASE("no update is late behind an epoch, or where somebody looks at the weights") {
  Late strategy;
  SmallTraining training(test_backend(), specs(), model, some_batch(), {.strategy = &strategy});
  run(training, 1, true);
  const Calls rest{"update 0", "update 1", "update 2"};
  CHECK(strategy.take() == step_alone + rest);
  run(training, 2, false);
  CHECK(strategy.take() == step_alone);
  for (int i = 0; i < 2; ++i) training.steps().await_weights();
  CHECK(strategy.take() == rest);
}

TEST_CASE("a rank without a batch makes the late updates of the step before, and no others") {
  Late strategy;
  SmallTraining training(test_backend(), specs(), model, some_batch(), {.strategy = &strategy});
  SmallTraining plain(test_backend(), specs(), model, some_batch(), {});
  run(plain, 1, false);
  run(training, 1, false);
  strategy.take();
  const StepTicket failed = run(training, 2, false, std::make_exception_ptr(UserError("no data")));
  CHECK(strategy.take() == Calls{"update 0", "update 1", "update 2"} + step_alone);
  CHECK(user_error([&] { training.steps().metrics(failed); }) == "no data");
  training.steps().await_weights();
  check_same_values(training.store(), plain.store());
}

TEST_CASE(
    "a late update whose exchange fails ends the next step, and one that is never asked for is given up") {
  Late strategy;
  {
    SmallTraining training(test_backend(), specs(), model, some_batch(), {.strategy = &strategy});
    run(training, 1, false);
    strategy.fails_at = 1;
    strategy.take();
    CHECK_THROWS_WITH_AS(run(training, 2, false), "no sum", DeviceError);
    CHECK(strategy.take() == Calls{"update 2", "give up"});
  }
  CHECK(strategy.take() == Calls{"give up"});
}

}  // namespace plexaura::testing::late_updates_test
