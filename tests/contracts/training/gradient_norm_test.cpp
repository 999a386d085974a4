// A limit for the norm of all gradients scales the whole step down, whatever the number of buckets and the
// padding.

#include <cmath>
#include <doctest/doctest.h>

#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/losses.h"
#include "core/ops/shape.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"

namespace plexaura::testing::gradient_norm_test {

namespace {

constexpr double rate = 0.25;
const TensorType filter{DType::float32, {5, 3, 3, 3}};
const TensorType offset{DType::float32, {20}};

LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  const Node pixels = flatten(conv2d(x, graph.parameter("filter", filter)));
  return {squared_error(pixels + graph.parameter("offset", offset), t)};
}

Batch some_batch() {
  return {whole_numbers({DType::float32, {4, 3, 4, 4}}, 1), whole_numbers({DType::float32, {4, 20}}, 2)};
}

// Returns the changes of one step, one parameter after another.
std::vector<double> change(std::int64_t bucket_bytes, double max_gradient_norm, double loss_scale) {
  const std::vector<ParameterSpec> specs{{"filter", filter, ParameterRole::trainable, Initialiser::ones()},
                                         {"offset", offset, ParameterRole::trainable, Initialiser::zeros()}};
  SmallTraining training(
      test_backend(), specs, model, some_batch(),
      {.optimizer = {.max_gradient_norm = max_gradient_norm, .scaled_loss = loss_scale != 1},
       .bucket_bytes = bucket_bytes,
       .loss_scale = loss_scale});
  std::vector<double> before;
  std::vector<double> after;
  const auto append = [&](std::vector<double>& to) {
    for (const char* name : {"filter", "offset"})
      for (const double value : training.value(name).to_doubles()) to.push_back(value);
  };
  append(before);
  training.step(some_batch(), rate);
  append(after);
  for (std::size_t i = 0; i < after.size(); ++i) after[i] -= before[i];
  return after;
}

double norm(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("gradients that are too long are scaled down together, and others are left alone") {
  for (const std::int64_t bucket_bytes : {1, 1 << 20})
    for (const double loss_scale : {1.0, 64.0}) {
      CAPTURE(bucket_bytes);
      CAPTURE(loss_scale);
      const std::vector<double> free = change(bucket_bytes, 0, 1);
      const double length = norm(free) / rate;
      REQUIRE(length > 1);
      CHECK(change(bucket_bytes, 2 * length, loss_scale) == free);
      const std::vector<double> limited = change(bucket_bytes, length / 8, loss_scale);
      for (std::size_t i = 0; i < free.size(); ++i)
        CHECK(limited[i] == doctest::Approx(free[i] / 8).epsilon(1e-5));
    }
}

}  // namespace plexaura::testing::gradient_norm_test
