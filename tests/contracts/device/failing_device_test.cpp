// A rank whose own work fails still takes part in the exchange of the step: it sends zeros as gradients, and reports its
// failure in the tail. So all ranks end after the same step. This also holds on a device that reports failures late.

#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/ops/gather.h"
#include "core/ops/losses.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::failing_device_test {

namespace {

const TensorType table{DType::float32, {5, 1}};
const std::vector<ParameterSpec> specs{{"w", table, ParameterRole::trainable, Initialiser::ones()}};

// Fails where an index is not one of the table: a kernel that every backend has, and that fails late on a device.
LossOutputs looking_up(Graph& graph, const Node& x, const Node& t) {
  return {squared_error(gather(graph.parameter("w", table), x), t)};
}

const Batch good{Tensor::of<std::int64_t>({2}, {1, 4}), Tensor::of<float>({2, 1}, {1, 2})};
const Batch bad{Tensor::of<std::int64_t>({2}, {1, 13}), Tensor::of<float>({2, 1}, {1, 2})};

// A UserError on the processor, a DeviceError elsewhere.
void check_names_gather(const std::string& text) {
  CAPTURE(text);
  CHECK(text.find("gather %") != std::string::npos);
  CHECK(text.find("is 13; an index must be from 0 to 4") != std::string::npos);
}

}  // namespace

TEST_CASE("a kernel that fails on one rank ends the same step on all") {
  ThreadRanks ranks(2, 10);
  ranks.run([&](Collective& collective) {
    const auto backend = open_backend(test_backend().info().name);
    SummingStrategy strategy(collective);
    const std::int64_t rank = collective.rank();
    SmallTraining run(*backend, specs, looking_up, good, {.strategy = &strategy, .sizes = {2}});
    strategy.begin(run.steps().border());
    run.launch(std::span(&good, 1), 0.01, 4, 0);
    CHECK(!run.metrics().failed);
    const Batch& mine = rank == 1 ? bad : good;
    run.launch(std::span(&mine, 1), 0.01, 4, 0);
    if (rank == 0) {
      CHECK(run.metrics().failed);
      CHECK(run.metrics().samples == 2);
    } else {
      check_names_gather(error_text<Error>([&] { run.metrics(); }));
    }
  });
}

TEST_CASE("a failure that shows after its step was launched belongs to the ticket of that step") {
  struct Watching final : Strategy, GradientSum {
    Event* last = nullptr;
    StrategyParts parts() override { return {.gradients = this}; }
    void gradients_ready(std::size_t, Event& final) override { last = &final; }
    UpdateAnswer before_update(std::size_t) override { return {}; }
  } strategy;
  SmallTraining run(test_backend(), specs, looking_up, good, {.strategy = &strategy, .sizes = {2}});
  const StepTicket failed = run.launch(std::span(&bad, 1), 0.01);
  strategy.last->wait();
  const StepTicket next = run.launch(std::span(&good, 1), 0.01);
  check_names_gather(error_text<Error>([&] { run.steps().metrics(failed); }));
  CHECK(run.steps().metrics(next).samples == 2);
}

}  // namespace plexaura::testing::failing_device_test
