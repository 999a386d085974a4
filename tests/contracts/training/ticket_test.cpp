#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

// The ticket of a step reads the metrics of that step, also while the next step runs, but not after that.

namespace plexaura::testing::ticket_test {

namespace {

const TensorType weights{DType::float32, {3, 2}};

LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  const Node y = matmul(x, graph.parameter("w", weights));
  return {.loss = squared_error(y, t), .metrics = {{.name = "total", .sum = sum(y)}}};
}

Batch batch_of(std::uint64_t seed) {
  return {whole_numbers({DType::float32, {4, 3}}, seed), whole_numbers({DType::float32, {4, 2}}, seed + 1)};
}

SmallTraining training() {
  return {test_backend(),
          {{"w", weights, ParameterRole::trainable, Initialiser::ones()}},
          model,
          batch_of(1),
          {.sizes = {4}}};
}

}  // namespace

TEST_CASE("a step can be read while the next one runs, and no longer") {
  SmallTraining late = training();
  SmallTraining prompt = training();
  StepTicket before;
  StepMetrics expected;
  for (std::uint64_t step = 1; step <= 5; ++step) {
    const Batch batch = batch_of(step);
    const StepTicket ticket = late.launch(std::span(&batch, 1), 0.01);
    CHECK(ticket.number == step);
    if (step > 1) {
      const StepMetrics metrics = late.steps().metrics(before);
      CHECK(metrics.loss == expected.loss);
      CHECK(metrics.samples == 4);
      CHECK(metrics.sums == expected.sums);
    }
    before = ticket;
    expected = prompt.step(batch, 0.01);
  }
  CHECK(error_text<InternalError>([&] {
          late.steps().metrics({.number = 3});
        }).find("step 3 were requested after 5") != std::string::npos);
  CHECK_THROWS_AS(late.steps().metrics({}), InternalError);
  CHECK_THROWS_AS(late.steps().metrics({.number = 6}), InternalError);
}

TEST_CASE("a failure belongs to the ticket of its step") {
  SmallTraining run = training();
  const Batch batch = batch_of(1);
  const MicroBatchInputs none[] = {{{}, 4, 0}};
  const StepTicket failed = run.steps().run({.micro_batches = none,
                                             .global_samples = 4,
                                             .failure = std::make_exception_ptr(UserError("no batch"))});
  const StepTicket good = run.launch(std::span(&batch, 1), 0.01);
  CHECK(user_error([&] { run.steps().metrics(failed); }) == "no batch");
  CHECK(run.steps().metrics(good).samples == 4);
}

}  // namespace plexaura::testing::ticket_test
