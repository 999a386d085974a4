// Padding is zero in every value, even after a kernel that adds the number 1, divides or takes an exponential.
// The tests read the physical bytes of every value in graphs with 1, 3 and 17 channels, and the bytes of the
// arenas after steps of training.

#include <algorithm>
#include <doctest/doctest.h>
#include <functional>

#include "core/autodiff/gradients.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/dropout.h"
#include "core/ops/losses.h"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"

namespace plexaura::testing::padding_test {

namespace {

// Runs the graph of `build` and the gradients of the sum of what it returns, and looks at every value.
PaddingReport look(std::int64_t channels, const std::function<Node(const Node&)>& build, bool with_gradient) {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, channels, 4, 4}});
  const Node y = build(x);
  std::vector<Node> outputs{y};
  if (with_gradient) outputs.push_back(gradients(sum(square(y)), {x})[0]);
  Runner runner(graph, outputs, test_backend(), {.keep_all = true});
  runner({whole_numbers(x.type(), 3)});
  return runner.padding();
}

void look_at_all(const std::vector<std::pair<const char*, std::function<Node(const Node&)>>>& families,
                 bool with_gradient = true) {
  std::int64_t padded = 0;
  for (const auto& [name, build] : families)
    for (const std::int64_t channels : {1, 3, 17}) {
      CAPTURE(name);
      CAPTURE(channels);
      const PaddingReport looked = look(channels, build, with_gradient);
      CHECK(looked.values > 0);
      CHECK_MESSAGE(looked.failures.empty(), looked.failures);
      padded += looked.padded;
    }
  if (!test_backend().info().host_memory) CHECK(padded > 0);
}

Node ones(const Node& like, Shape shape) {
  Tensor tensor(TensorType{like.dtype(), std::move(shape)});
  std::ranges::fill(tensor.as<float>(), 1.F);
  return like.graph().constant(std::move(tensor));
}

}  // namespace

TEST_CASE("padding stays zero under elementwise ops") {
  look_at_all({
      {"add a number", [](const Node& x) { return x + 1; }},
      {"exp", [](const Node& x) { return exp(x); }},
      {"log", [](const Node& x) { return log(square(x) + 1); }},
      {"sqrt", [](const Node& x) { return sqrt(square(x) + 1); }},
      {"sigmoid", [](const Node& x) { return sigmoid(x); }},
      {"softplus", [](const Node& x) { return softplus(x); }},
      {"tanh", [](const Node& x) { return tanh(x); }},
      {"relu", [](const Node& x) { return relu(x - 1); }},
      {"divide", [](const Node& x) { return x / (x * x + 1); }},
      {"divide by itself", [](const Node& x) { return x / (x + 10); }},
      {"broadcast over channels",
       [](const Node& x) {
         return x + ones(x, {1, x.shape()[1], 1, 1});
       }},
      {"broadcast from one channel",
       [](const Node& x) {
         return x * ones(x, {2, 1, 4, 4}) + ones(x, {1, 1, 1, 4});
       }},
      {"dropout", [](const Node& x) { return dropout(x + 1, {.p = 0.5}); }},
      {"softmax", [](const Node& x) { return softmax(x + 1, 1); }},
      {"log of softmax", [](const Node& x) { return log_softmax(x + 1, 3); }},
  });
}

TEST_CASE("padding stays zero under ops without gradients") {
  look_at_all({{"compare", [](const Node& x) { return cast(ge(x, x), DType::float32); }},
               {"equal", [](const Node& x) { return cast(eq(x, 0), DType::float32); }}},
              false);
}

TEST_CASE("padding stays zero under convolution, pooling and normalisation") {
  const auto channels = [](const Node& x) { return x.shape()[1]; };
  look_at_all({
      {"convolution",
       [&](const Node& x) {
         return conv2d(x, ones(x, {5, channels(x), 3, 3})) + 1;
       }},
      {"padded, strided convolution",
       [&](const Node& x) {
         return conv2d(x + 1, ones(x, {17, channels(x), 3, 3}), {.stride = {2, 2}, .padding = {1, 1}});
       }},
      {"max pooling",
       [](const Node& x) {
         return max_pool2d(x - 5, {.kernel = {2, 2}});
       }},
      {"average pooling",
       [](const Node& x) {
         return avg_pool2d(x + 1, {.kernel = {3, 3}});
       }},
      {"batch norm",
       [&](const Node& x) { return batch_norm(x + 1, ones(x, {channels(x)}), ones(x, {channels(x)})).y; }},
      {"batch norm and relu",
       [&](const Node& x) {
         return relu(batch_norm(x, ones(x, {channels(x)}), ones(x, {channels(x)})).y + x);
       }},
      {"batch norm at inference",
       [&](const Node& x) {
         const Node c = ones(x, {channels(x)});
         return batch_norm_inference(x, c, c, c, c);
       }},
  });
}

TEST_CASE("padding stays zero under reductions and changes of shape") {
  look_at_all({
      {"mean over pixels",
       [](const Node& x) {
         return mean(x + 1, {.axes = {2, 3}, .keepdims = true});
       }},
      {"sum over channels", [](const Node& x) { return sum(x + 1, {.axes = {1}, .keepdims = true}); }},
      {"max over samples", [](const Node& x) { return max(exp(x), {.axes = {0}, .keepdims = true}); }},
      {"reshape",
       [](const Node& x) {
         return reshape(x + 1, {2, x.shape()[1] * 2, 2, 4}) + 1;
       }},
      {"permute",
       [](const Node& x) {
         return permute(x + 1, {1, 0, 3, 2}) + 1;
       }},
      {"broadcast",
       [](const Node& x) { return broadcast_to(mean(x, {.axes = {1}, .keepdims = true}) + 1, x.shape()); }},
  });
}

TEST_CASE("padding stays zero in the arenas of values, gradients and state") {
  for (const std::int64_t channels : {1, 3, 17})
    for (const auto kind : {OptimizerSpec::sgd, OptimizerSpec::adam, OptimizerSpec::adamw,
                            OptimizerSpec::lars, OptimizerSpec::lamb, OptimizerSpec::rmsprop}) {
      const TensorType filter{DType::float32, {5, channels, 3, 3}};
      const SmallTraining::Model model = [&](Graph& graph, const Node& x, const Node& t) -> LossOutputs {
        return {squared_error(flatten(conv2d(x, graph.parameter("filter", filter)) + 1), t)};
      };
      const Batch batch{whole_numbers({DType::float32, {4, channels, 4, 4}}, 1),
                        whole_numbers({DType::float32, {4, 20}}, 2)};
      const std::vector<ParameterSpec> specs{
          {"filter", filter, ParameterRole::trainable, Initialiser::ones()}};
      Placement placement;
      placement.append("filter", filter, ParameterRole::trainable, Layout({0, 2, 3, 1}, {{1, 8}}));
      for (const bool foreign : {false, true}) {
        OptimizerSpec optimizer{.kind = kind, .weight_decay = 0.1};
        if (kind == OptimizerSpec::sgd || kind == OptimizerSpec::lars || kind == OptimizerSpec::rmsprop)
          optimizer.momentum = 0.9;
        SmallTraining run(test_backend(), specs, model, batch,
                          {.optimizer = optimizer,
                           .sizes = {2},
                           .micro_batches = true,
                           .placement = foreign ? &placement : nullptr});
        const std::vector<Batch> halves{part(batch, 0, 2), part(batch, 2, 2)};
        for (int i = 0; i < 2; ++i) run.launch(halves, 0.1);
        const Placement::Entry& entry = run.store().placement().entries[0];
        const auto zero = [&](Address arena) {
          return padding_is_zero(test_backend(), arena, entry.layout, filter);
        };
        CAPTURE(channels);
        CAPTURE(to_string(entry.layout));
        CHECK(zero(run.store().values()));
        CHECK(zero(run.store().gradients()));
        for (std::int64_t state = 0; state < run.store().states(); ++state)
          CHECK(zero(run.store().state(state)));
      }
    }
}

}  // namespace plexaura::testing::padding_test
