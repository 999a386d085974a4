// Four micro-batches give the result of one batch: gradients, changes of buffers and the tail are added, with
// equal bits if sums are exact. Batch norm computes its statistics over each micro-batch. Its running
// statistics change by the mean of the changes of all micro-batches, weighted by samples.

#include <cmath>
#include <doctest/doctest.h>

#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"

namespace plexaura::testing::micro_batches_test {

namespace {

std::vector<ParameterSpec> specs(DType dtype) {
  return {{"conv", {dtype, {5, 3, 3, 3}}, ParameterRole::trainable, Initialiser::uniform(0.5)},
          {"out", {dtype, {20, 2}}, ParameterRole::trainable, Initialiser::uniform(0.5)},
          {"seen", {dtype, {3, 4, 4}}, ParameterRole::buffer, Initialiser::zeros()}};
}

// Returns a model with a convolution, a product, and a running mean of the inputs. A linear one keeps whole
// numbers exact.
SmallTraining::Model net(bool linear) {
  return [linear](Graph& graph, const Node& x, const Node& t) -> LossOutputs {
    const DType dtype = x.dtype();
    const Node conv = graph.parameter("conv", {dtype, {5, 3, 3, 3}});
    const Node out = graph.parameter("out", {dtype, {20, 2}});
    const Node seen = graph.buffer("seen", {dtype, {3, 4, 4}});
    graph.update(seen, seen * 0.5 + mean(x, {.axes = {0}}) * 0.5);
    Node hidden = conv2d(x, conv);
    if (!linear) hidden = tanh(hidden);
    const Node y = matmul(flatten(hidden), out);
    const Node loss = squared_error(y, t);
    return {.loss = loss, .metrics = {{.name = "above", .sum = sum(cast(gt(y, t), dtype))}}};
  };
}

Batch whole_batch(DType dtype, std::int64_t samples) {
  return {whole_numbers({dtype, {samples, 3, 4, 4}}, 3, 2), whole_numbers({dtype, {samples, 2}}, 4, 2)};
}

struct Pair {
  Pair(DType dtype, std::int64_t samples, const std::vector<std::int64_t>& sizes,
       const SmallTraining::Model& model)
      : batch(whole_batch(dtype, samples)),
        one(test_backend(), specs(dtype), model, batch, {.optimizer = optimizer(), .sizes = {samples}}),
        many(test_backend(), specs(dtype), model, batch,
             {.optimizer = optimizer(),
              .sizes = sizes,
              .micro_batches = true,
              .placement = &one.store().placement()}) {
    for (std::int64_t first = 0; const std::int64_t size : sizes) {
      parts.push_back(part(batch, first, size));
      first += size;
    }
  }
  static OptimizerSpec optimizer() { return {.momentum = 0.5}; }

  Batch batch;
  std::vector<Batch> parts;
  SmallTraining one;
  SmallTraining many;
};

double difference(const Tensor& a, const Tensor& b) {
  const auto left = a.to_doubles();
  const auto right = b.to_doubles();
  double most = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    most = std::max(most, std::abs(left[i] - right[i]) / std::max(1.0, std::abs(right[i])));
  return most;
}

void check_same(Pair& pair, double tolerance) {
  const StepMetrics many = pair.many.metrics();
  const StepMetrics one = pair.one.metrics();
  CHECK(std::abs(many.loss - one.loss) <= tolerance * std::abs(one.loss));
  CHECK(many.samples == one.samples);
  CHECK(pair.many.metrics().sums[0] == pair.one.metrics().sums[0]);
}

}  // namespace

TEST_CASE("four micro-batches are one batch, bit for bit where sums are exact") {
  Pair pair(DType::float32, 8, {2, 2, 2, 2}, net(true));
  for (SmallTraining* run : {&pair.one, &pair.many}) {
    run->store().write("conv", whole_numbers({DType::float32, {5, 3, 3, 3}}, 1, 1));
    run->store().write("out", whole_numbers({DType::float32, {20, 2}}, 2, 1));
  }
  // Runs two steps, the first with learning rate 0. The second one finds old values in the arenas.
  for (const double rate : {0.0, 0.125}) {
    pair.one.launch(std::span(&pair.batch, 1), rate);
    pair.many.launch(pair.parts, rate);
    check_same(pair, 0);
    for (const char* name : {"conv", "out", "seen"}) {
      CAPTURE(name);
      CHECK(pair.many.store().read_gradient(name) == pair.one.store().read_gradient(name));
    }
    check_same_values(pair.many.store(), pair.one.store());
  }
}

TEST_CASE("micro-batches of other sizes are one batch, to rounding") {
  Pair pair(DType::float64, 8, {1, 2, 3, 2}, net(false));
  for (int i = 0; i < 3; ++i) {
    pair.one.launch(std::span(&pair.batch, 1), 0.01);
    pair.many.launch(pair.parts, 0.01);
    check_same(pair, 1e-12);
    for (const ParameterSpec& spec : pair.one.store().specs()) {
      CAPTURE(spec.name);
      CHECK(difference(pair.many.value(spec.name), pair.one.value(spec.name)) < 1e-12);
    }
  }
}

TEST_CASE("micro-batches without samples add nothing") {
  Pair pair(DType::float64, 4, {2, 0, 2, 0}, net(false));
  for (int i = 0; i < 2; ++i) {
    pair.one.launch(std::span(&pair.batch, 1), 0.01);
    pair.many.launch(pair.parts, 0.01);
    check_same(pair, 1e-12);
    for (const ParameterSpec& spec : pair.one.store().specs())
      CHECK(difference(pair.many.value(spec.name), pair.one.value(spec.name)) < 1e-12);
  }
}

TEST_CASE("a step that begins with a micro-batch without samples") {
  Pair pair(DType::float64, 4, {0, 3, 1}, net(false));
  pair.one.launch(std::span(&pair.batch, 1), 0.01);
  pair.many.launch(pair.parts, 0.01);
  check_same(pair, 1e-12);
  for (const ParameterSpec& spec : pair.one.store().specs())
    CHECK(difference(pair.many.value(spec.name), pair.one.value(spec.name)) < 1e-12);
}

TEST_CASE(
    "a buffer that is set gets the mean of what each micro-batch would set, and one that counts adds up") {
  const TensorType channels{DType::float32, {3}};
  const TensorType one{DType::float32, {1}};
  const SmallTraining::Model model = [&](Graph& graph, const Node& x, const Node& t) -> LossOutputs {
    graph.update(graph.buffer("last", channels), mean(x, {.axes = {0, 2, 3}}));
    graph.update(graph.buffer("steps", one), graph.buffer("steps", one) + 1);
    return {squared_error(flatten(x * reshape(graph.parameter("w", channels), {3, 1, 1})), t)};
  };
  const std::vector<ParameterSpec> all{{"w", channels, ParameterRole::trainable, Initialiser::ones()},
                                       {"last", channels, ParameterRole::buffer, Initialiser::constant(3e38)},
                                       {"steps", one, ParameterRole::buffer, Initialiser::constant(7)}};
  const Batch batch{whole_numbers({DType::float32, {6, 3, 4, 4}}, 3),
                    whole_numbers({DType::float32, {6, 48}}, 4)};
  SmallTraining run(test_backend(), all, model, batch, {.sizes = {4, 2, 0}, .micro_batches = true});
  const std::vector<Batch> parts{part(batch, 0, 4), part(batch, 4, 2), part(batch, 6, 0)};
  const std::vector<double> values = batch.x.to_doubles();
  for (int step = 1; step <= 2; ++step) {
    run.launch(parts, 0.01);
    run.metrics();
    for (std::size_t channel = 0; channel < 3; ++channel) {
      double sum = 0;
      for (std::size_t sample = 0; sample < 6; ++sample)
        for (std::size_t i = 0; i < 16; ++i) sum += values[(sample * 3 + channel) * 16 + i];
      CHECK(run.value("last").to_doubles()[channel] == doctest::Approx(sum / 96).epsilon(1e-6));
    }
    CHECK(run.value("steps").to_doubles()[0] == doctest::Approx(7 + step).epsilon(1e-6));
  }
}

TEST_CASE("running statistics of batch norm move by the weighted mean over micro-batches") {
  const TensorType channels{DType::float64, {3}};
  const SmallTraining::Model model = [&](Graph& graph, const Node& x, const Node& t) -> LossOutputs {
    const BatchNormResult norm =
        batch_norm(x, graph.parameter("scale", channels), graph.parameter("shift", channels));
    const Node running = graph.buffer("running", channels);
    graph.update(running, running * 0.9 + norm.mean * 0.1);
    return {squared_error(flatten(norm.y), t)};
  };
  const std::vector<ParameterSpec> all{
      {"scale", channels, ParameterRole::trainable, Initialiser::ones()},
      {"shift", channels, ParameterRole::trainable, Initialiser::zeros()},
      {"running", channels, ParameterRole::buffer, Initialiser::constant(2)}};
  const Batch batch{whole_numbers({DType::float64, {6, 3, 4, 4}}, 3),
                    whole_numbers({DType::float64, {6, 48}}, 4)};
  SmallTraining run(test_backend(), all, model, batch, {.sizes = {4, 2, 0}, .micro_batches = true});
  const std::vector<Batch> parts{part(batch, 0, 4), part(batch, 4, 2), part(batch, 6, 0)};
  run.launch(parts, 0.01);
  CHECK(run.metrics().samples == 6);

  // 0.9 running + 0.1 mean is linear in the mean, and means are weighted by samples, so the result is that of
  // the whole batch.
  const std::vector<double> values = batch.x.to_doubles();
  for (std::size_t channel = 0; channel < 3; ++channel) {
    double sum = 0;
    for (std::size_t sample = 0; sample < 6; ++sample)
      for (std::size_t i = 0; i < 16; ++i) sum += values[(sample * 3 + channel) * 16 + i];
    CHECK(run.value("running").to_doubles()[channel] == doctest::Approx(1.8 + 0.1 * sum / 96).epsilon(1e-12));
  }
  for (const double value : run.value("scale").to_doubles()) CHECK(std::isfinite(value));
}

}  // namespace plexaura::testing::micro_batches_test
