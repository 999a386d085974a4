#pragma once

#include <vector>

#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "tests/contracts/training/small_training.h"

// A model for SmallTraining, for tests that need any model: two layers with the parameters "first" and
// "second".
namespace plexaura::testing::two_layers {

inline const TensorType first{DType::float32, {6, 8}};
inline const TensorType second{DType::float32, {8, 2}};

// x: [N, 6]; t: [N, 2], the targets.
inline LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  const Node hidden = tanh(matmul(x, graph.parameter("first", first)));
  return {squared_error(matmul(hidden, graph.parameter("second", second)), t)};
}

inline std::vector<ParameterSpec> specs() {
  return {{"first", first, ParameterRole::trainable, Initialiser::uniform(0.5)},
          {"second", second, ParameterRole::trainable, Initialiser::uniform(0.5)}};
}

// Returns four samples of small whole numbers, which depend on the seeds.
inline Batch batch(std::uint64_t seed_of_x, std::uint64_t seed_of_t) {
  return {whole_numbers({DType::float32, {4, 6}}, seed_of_x),
          whole_numbers({DType::float32, {4, 2}}, seed_of_t)};
}

}  // namespace plexaura::testing::two_layers
