#include "training/programs/first_loss_scale.h"

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/training/small_run.h"
#include "training/loop/trainer.h"
#include "training/programs/optimizer.h"

namespace plexaura::testing::first_loss_scale_test {

namespace {

const ArenaTypes in_float16 = ArenaTypes::mixed(DType::float16);
constexpr float usual = LossScale{}.scale;

constexpr std::int64_t features = 4;

ParameterStore two_layers(double deviation) {
  const auto layer = [&](const char* name, std::int64_t in, std::int64_t out) {
    return ParameterSpec{
        name, {DType::float32, Shape{in, out}}, ParameterRole::trainable, Initialiser::normal(deviation)};
  };
  ParameterStore store({layer("first", features, 8), layer("second", 8, 3)}, 1);
  store.set_types(in_float16);
  return store;
}

// A classifier that is wrong about half of the labels at first, so that its gradients are large.
Node logits_of(const Node& x) {
  Graph& graph = x.graph();
  const Node first = graph.parameter("first", {DType::float32, Shape{x.shape()[1], 8}});
  return matmul(relu(matmul(x, first)), graph.parameter("second", {DType::float32, Shape{8, 3}}));
}

// The loss of the points with as many equal labels as an image has pixels.
LossOutputs loss_of_pixels(const ModelInputs& inputs, std::int64_t pixels) {
  const Node logits = logits_of(inputs["samples"]);
  const std::int64_t samples = logits.shape()[0];
  const Node all = broadcast_to(reshape(logits, {samples, 1, 3}), {samples, pixels, 3});
  const Node labels = broadcast_to(reshape(inputs["labels"], {samples, 1}), {samples, pixels});
  const WeightedLoss loss = weighted_cross_entropy(reshape(all, {samples * pixels, 3}),
                                                   reshape(labels, {samples * pixels}), {.ignore = 255});
  return {.loss = loss.sum, .weight = loss.weight};
}

}  // namespace

TEST_CASE("the loss scale begins smaller by 8 times the power of 2 below the labels of a sample") {
  const auto scale_of = [](std::int64_t labels, std::int64_t samples) {
    Graph graph;
    const Node logits = graph.input("logits", {DType::float32, {labels, 3}});
    const WeightedLoss loss =
        weighted_cross_entropy(logits, graph.input("labels", {DType::int64, {labels}}), {.ignore = 255});
    return first_loss_scale({.loss = loss.sum, .weight = loss.weight}, samples).scale;
  };
  CHECK(scale_of(4, 4) == usual);
  CHECK(scale_of(4 * 256, 4) == usual / (8 * 256));
  CHECK(scale_of(4 * 300, 4) == usual / (8 * 256));
  CHECK(scale_of(4 * 255, 4) == usual / (8 * 128));
  CHECK(scale_of(2 * 512 * 512, 2) == 0.03125F);
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {100}});
  CHECK(first_loss_scale({.loss = mean(x)}, 1).scale == usual);
  CHECK(first_loss_scale({.loss = sum(x), .weight = sum(x)}, 100).scale == usual);
}

TEST_CASE("float16 trains on a sum over the pixels of large masks from the first step") {
  constexpr std::int64_t pixels = 512 * 512;
  Graph graph;
  ParameterStore store = two_layers(1);
  const Node logits = logits_of(graph.input("x", {DType::float32, {pixels, 4}}));
  const WeightedLoss loss =
      weighted_cross_entropy(logits, graph.input("labels", {DType::int64, {pixels}}), {.ignore = 255});
  Optimizer train({.loss = loss.sum, .weight = loss.weight}, store, test_backend(),
                  {.optimizer = {.kind = OptimizerSpec::adam}, .learning_rate = 0.05});
  Random random{7};
  const Tensor x = make({DType::float32, {pixels, 4}}, between(-4, 4), random);
  Tensor labels({DType::int64, {pixels}});
  for (std::int64_t i = 0; i < pixels; ++i)
    labels.as<std::int64_t>()[static_cast<std::size_t>(i)] =
        x.as<float>()[static_cast<std::size_t>(4 * i)] > 0 ? 1 : 2;
  const double first = train.step({{"x", x}, {"labels", labels}});
  double last = first;
  for (int step = 0; step < 8; ++step) last = train.step({{"x", x}, {"labels", labels}});
  CHECK(store.read_loss_scale().skipped_steps == 0);
  CHECK(last < 0.8 * first);
}

TEST_CASE("a run in float16 reports its loss scale and its skipped steps after each epoch") {
  ParameterStore store = two_layers(0.1);
  Trainer trainer({.model = [](const ModelInputs& inputs) { return loss_of_pixels(inputs, 1 << 18); },
                   .store = store,
                   .backend = test_backend(),
                   .train = points(8)},
                  {.batch_size = 4, .epochs = 1, .learning_rate = 0.01});
  CHECK(store.read_loss_scale() == LossScale{.scale = 0.03125F});
  Recorder seen;
  trainer.run(seen);
  REQUIRE(seen.epochs.size() == 1);
  const LossScale last = seen.epochs[0].loss_scale.value_or(LossScale{});
  CHECK(last.scale == 0.03125F);
  CHECK(last.good_steps == 2);
  CHECK(last.skipped_steps == 0);
}

}  // namespace plexaura::testing::first_loss_scale_test
