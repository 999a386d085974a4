// A rank whose own work fails takes part to the end: its failure is in the tail over zeroed gradients, also
// on a device where it shows late, and all ranks leave after the same step.

#include <doctest/doctest.h>
#include <stdexcept>

#include "backends/registry.h"
#include "core/device/host_kernel.h"
#include "core/ops/binary.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::failing_device_test {

namespace {

// y = x; fails where an element is 13.
struct Superstitious final : Op {
  std::string_view name() const override { return "superstitious"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<Node> vjp(const VjpRequest& request) const override { return {request.grad_outputs[0]}; }
};

void run_superstitious(const HostCall& call) {
  for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
    const float value = call.inputs[0].as<float>()[i];
    if (value == 13) throw std::runtime_error("this is the thirteenth");
    call.outputs[0].as<float>()[i] = value;
  }
}

const TensorType weights{DType::float32, {2, 1}};
const std::vector<ParameterSpec> specs{{"w", weights, ParameterRole::trainable, Initialiser::ones()}};

LossOutputs superstitious_model(Graph& graph, const Node& x, const Node& t) {
  const Node y = apply(std::make_shared<Superstitious>(), {x});
  return {squared_error(matmul(y, graph.parameter("w", weights)), t)};
}

const Batch good{Tensor::of<float>({2, 2}, {1, 2, 3, 4}), Tensor::of<float>({2, 1}, {1, 2})};
const Batch bad{Tensor::of<float>({2, 2}, {1, 13, 3, 4}), Tensor::of<float>({2, 1}, {1, 2})};

}  // namespace

TEST_CASE("a kernel that fails on one rank ends the same step on all") {
  register_host_kernel("superstitious", run_superstitious);
  ThreadRanks ranks(2, 10);
  ranks.run([&](Collective& collective) {
    const auto backend = open_backend(test_backend().info().name);
    SummingStrategy strategy(collective);
    const std::int64_t rank = collective.rank();
    SmallTraining run(*backend, specs, superstitious_model, good, {.strategy = &strategy, .sizes = {2}});
    strategy.begin(run.steps().border());
    run.launch(std::span(&good, 1), 0.01, 4, 0);
    CHECK(!run.metrics().failed);
    const Batch& mine = rank == 1 ? bad : good;
    run.launch(std::span(&mine, 1), 0.01, 4, 0);
    if (rank == 0) {
      CHECK(run.metrics().failed);
      CHECK(run.metrics().samples == 2);
    } else {
      const std::string text = device_error([&] { run.metrics(); });
      CAPTURE(text);
      CHECK(text.find("superstitious %") != std::string::npos);
      CHECK(text.find("thirteenth") != std::string::npos);
    }
  });
}

TEST_CASE("a failure that shows after its step was launched belongs to the ticket of that step") {
  register_host_kernel("superstitious", run_superstitious);
  struct Watching final : Strategy {
    Event* last = nullptr;
    HookSet hooks() const override { return {.gradients_ready = true}; }
    void gradients_ready(std::size_t, Event& final) override { last = &final; }
  } strategy;
  SmallTraining run(test_backend(), specs, superstitious_model, good, {.strategy = &strategy, .sizes = {2}});
  const StepTicket failed = run.launch(std::span(&bad, 1), 0.01);
  strategy.last->wait();
  const StepTicket next = run.launch(std::span(&good, 1), 0.01);
  CHECK(device_error([&] { run.steps().metrics(failed); }).find("thirteenth") != std::string::npos);
  CHECK(run.steps().metrics(next).samples == 2);
}

}  // namespace plexaura::testing::failing_device_test
