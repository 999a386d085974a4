// Tests when the hooks of a strategy are called: buckets are announced in the order of placement as the
// backward pass finishes them. A part that a strategy does not have costs nothing, and does not divide a
// recording.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>

#include "core/ops/conv2d.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "tests/contracts/device/counting_backend.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"

namespace plexaura::testing::hooks_test {

namespace {

const TensorType first{DType::float32, {5, 3, 3, 3}};
const TensorType second{DType::float32, {80, 8}};
const TensorType third{DType::float32, {8, 2}};

LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  const Node a = tanh(conv2d(x, graph.parameter("first", first)));
  const Node b = tanh(matmul(flatten(a), graph.parameter("second", second)));
  return {squared_error(matmul(b, graph.parameter("third", third)), t)};
}

std::vector<ParameterSpec> specs() {
  return {{"first", first, ParameterRole::trainable, Initialiser::uniform(0.5)},
          {"second", second, ParameterRole::trainable, Initialiser::uniform(0.5)},
          {"third", third, ParameterRole::trainable, Initialiser::uniform(0.5)}};
}

Batch some_batch() {
  return {whole_numbers({DType::float32, {4, 3, 6, 6}}, 1), whole_numbers({DType::float32, {4, 2}}, 2)};
}

enum class Has { nothing, weights, gradients };

// A strategy with one part or none that records every call.
class Noting : public Strategy, public GradientSum, public WeightExchange {
 public:
  explicit Noting(Has part) : part_(part) {}
  StrategyParts parts() override {
    return {.gradients = part_ == Has::gradients ? this : nullptr,
            .weights = part_ == Has::weights ? this : nullptr};
  }
  void gradients_ready(std::size_t bucket, Event&) override {
    calls.push_back("ready " + std::to_string(bucket));
  }
  UpdateAnswer before_update(std::size_t bucket) override {
    calls.push_back("update " + std::to_string(bucket));
    return {};
  }
  void after_update() override { calls.emplace_back("after"); }
  std::vector<std::string> calls;

 private:
  Has part_;
};

struct Counted {
  std::int64_t replays = 0;  // of one step
  std::vector<std::string> calls;
};

Counted third_step(Has part) {
  CountingBackend backend(test_backend());
  Noting strategy(part);
  SmallTraining run(backend, specs(), model, some_batch(), {.strategy = &strategy});
  for (int i = 0; i < 2; ++i) run.step(some_batch(), 0.01);
  strategy.calls.clear();
  const std::int64_t before = backend.counts().replays;
  run.step(some_batch(), 0.01);
  return {backend.counts().replays - before, strategy.calls};
}

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE(
    "parts are called in placement order, those that a strategy has alone, and cut recordings nowhere else") {
  const bool records = test_backend().record([] {}) != nullptr;
  const auto check = [&](Has part, const Calls& calls, std::int64_t segments) {
    const Counted counted = third_step(part);
    CHECK(counted.calls == calls);
    if (records) CHECK(counted.replays == segments);
  };
  check(Has::nothing, {}, 1);  // gradients and update are one recording
  check(Has::weights, {"after"}, 1);
  // The copies of gradients for the strategy belong to the recording of gradients. One update for each
  // parameter follows.
  check(Has::gradients,
        {"ready 0", "ready 1", "ready 2", "ready 3", "update 0", "update 1", "update 2", "update 3"}, 4);
}

TEST_CASE("buckets are announced while backward still runs, and are final then") {
  // Reads a bucket that was announced, and one that was not.
  struct Looking final : Strategy, GradientSum {
    StrategyParts parts() override { return {.gradients = this}; }
    void gradients_ready(std::size_t bucket, Event& final) override {
      final.wait();
      const auto bytes = border->gradients(bucket);
      seen.emplace_back(bytes.begin(), bytes.end());
      if (bucket == 0 && !border->gradients(1).empty() && host_memory) {
        float later = 0;
        std::memcpy(&later, border->gradients(2).data(), sizeof later);
        early = early || std::isnan(later);
      }
    }
    UpdateAnswer before_update(std::size_t bucket) override {
      const auto bytes = border->gradients(bucket);
      same = same && std::ranges::equal(bytes, seen[bucket]);
      return {};
    }
    WeightsImmigration* border = nullptr;
    bool host_memory = false;
    std::vector<std::vector<std::byte>> seen;
    bool early = false;
    bool same = true;
  };
  Looking strategy;
  SmallTraining run(test_backend(), specs(), model, some_batch(), {.strategy = &strategy});
  strategy.border = &run.steps().border();
  strategy.host_memory = test_backend().info().host_memory;
  if (strategy.host_memory)
    std::memset(run.store().gradients(), 0xff,
                4 * static_cast<std::size_t>(run.store().placement().gradient_count()));
  run.step(some_batch(), 0.01);
  CHECK(strategy.seen.size() == 4);
  CHECK(strategy.same);
  CHECK(strategy.early == strategy.host_memory);
}

}  // namespace plexaura::testing::hooks_test
