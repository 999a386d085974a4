// A loss scale lifts small gradients into the range of a dtype, and changes nothing else: a scale that is a
// power of two gives the same bits of weights, state and buffers.

#include <doctest/doctest.h>

#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::loss_scale_test {

namespace {

const TensorType first{DType::float32, {6, 5}};
const TensorType second{DType::float32, {5, 2}};
const TensorType seen{DType::float32, {6}};

LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  graph.update(graph.buffer("seen", seen), mean(x, {.axes = {0}}));
  const Node hidden = tanh(matmul(x, graph.parameter("first", first)));
  return {squared_error(matmul(hidden, graph.parameter("second", second)), t)};
}

std::vector<ParameterSpec> specs() {
  return {{"first", first, ParameterRole::trainable, Initialiser::uniform(0.5)},
          {"second", second, ParameterRole::trainable, Initialiser::uniform(0.5)},
          {"seen", seen, ParameterRole::buffer, Initialiser::zeros()}};
}

Batch some_batch() {
  return {whole_numbers({DType::float32, {4, 6}}, 1), whole_numbers({DType::float32, {4, 2}}, 2)};
}

}  // namespace

TEST_CASE("a loss scale of 1024 leaves the same bits") {
  using Kind = OptimizerSpec::Kind;
  for (const OptimizerSpec& optimizer : {OptimizerSpec{.weight_decay = 0.01},
                                         {.momentum = 0.9, .nesterov = true, .weight_decay = 0.01},
                                         {.kind = Kind::adam, .weight_decay = 0.01},
                                         {.kind = Kind::adamw, .weight_decay = 0.01}}) {
    SmallTraining plain(test_backend(), specs(), model, some_batch(), {.optimizer = optimizer});
    OptimizerSpec dividing = optimizer;
    dividing.scaled_loss = true;
    SmallTraining scaled(test_backend(), specs(), model, some_batch(),
                         {.optimizer = dividing, .loss_scale = 1024});
    for (int i = 0; i < 3; ++i)
      CHECK(scaled.step(some_batch(), 0.05).loss == plain.step(some_batch(), 0.05).loss);
    check_same_values(scaled.store(), plain.store());
    for (std::int64_t state = 0; state < plain.store().states(); ++state)
      for (const char* name : {"first", "second"})
        CHECK(scaled.store().read_state(state, name) == plain.store().read_state(state, name));
  }
}

TEST_CASE("a loss scale that nobody divides out is refused") {
  SmallTraining training(test_backend(), specs(), model, some_batch(), {.loss_scale = 2});
  CHECK(error_text<InternalError>([&] { training.step(some_batch(), 0.05); }) ==
        "gradients have a loss scale, and the update does not divide it out");
}

}  // namespace plexaura::testing::loss_scale_test
