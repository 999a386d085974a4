// Where a strategy is called: buckets are announced in placement order as backward finishes them, a bucket's
// weights may still be arriving until its first reader, and what a strategy does not declare costs nothing,
// not even a cut in a recording.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>

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

// Declares some hooks and notes every call.
class Noting : public Strategy {
 public:
  explicit Noting(HookSet declared) : declared_(declared) {}
  HookSet hooks() const override { return declared_; }
  void gradients_ready(std::size_t bucket, Event&) override {
    calls.push_back("ready " + std::to_string(bucket));
  }
  UpdateAnswer before_update(std::size_t bucket) override {
    calls.push_back("update " + std::to_string(bucket));
    return {};
  }
  void before_use(std::size_t bucket) override { calls.push_back("use " + std::to_string(bucket)); }
  void after_update() override { calls.emplace_back("after"); }
  std::vector<std::string> calls;

 private:
  HookSet declared_;
};

struct Counted {
  std::int64_t replays = 0;  // of one step
  std::vector<std::string> calls;
};

Counted third_step(const HookSet& hooks) {
  CountingBackend backend(test_backend());
  Noting strategy(hooks);
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
    "hooks are called in placement order, those that are declared alone, and cut recordings nowhere else") {
  const bool records = test_backend().record([] {}) != nullptr;
  const auto check = [&](const HookSet& hooks, const Calls& calls, std::int64_t segments) {
    const Counted counted = third_step(hooks);
    CHECK(counted.calls == calls);
    if (records) CHECK(counted.replays == segments);
  };
  check({}, {}, 1);  // gradients and update are one recording
  check({.after_update = true}, {"after"}, 1);
  // What is copied out for the strategy is a part of the recording.
  const Calls ready{"ready 0", "ready 1", "ready 2", "ready 3"};
  Calls all = ready;
  for (const char* call : {"update 0", "update 1", "update 2", "update 3"}) all.emplace_back(call);
  check({.gradients_ready = true}, ready, 1);
  CHECK(third_step({.gradients_ready = true, .before_update = true}).calls == all);
}

TEST_CASE("buckets are announced while backward still runs, and are final then") {
  // Looks at what was announced, and at what was not.
  struct Looking final : Strategy {
    HookSet hooks() const override { return {.gradients_ready = true, .before_update = true}; }
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

TEST_CASE("weights of a bucket may arrive until its first reader") {
  // Spoils all weights after each update, and brings each bucket's back when it is about to be read.
  struct Arriving final : Strategy {
    HookSet hooks() const override { return {.before_use = true, .after_update = true}; }
    void after_update() override {
      for (const auto& entry : border->entries()) {
        kept[entry.name] = border->emigrate(entry.name);
        Tensor spoiled(entry.type);
        for (float& value : spoiled.as<float>()) value = std::numeric_limits<float>::quiet_NaN();
        border->immigrate(entry.name, spoiled);
      }
    }
    void before_use(std::size_t bucket) override {
      for (const auto& entry : border->entries())
        if (entry.bucket == bucket && kept.contains(entry.name))
          border->immigrate(entry.name, kept[entry.name]);
      asked.push_back(bucket);
    }
    WeightsImmigration* border = nullptr;
    std::map<std::string, Tensor> kept;
    std::vector<std::size_t> asked;
  };
  Arriving strategy;
  const Batch batch = some_batch();
  SmallTraining arriving(test_backend(), specs(), model, batch,
                         {.strategy = &strategy, .sizes = {2}, .micro_batches = true});
  SmallTraining plain(test_backend(), specs(), model, batch, {.sizes = {2}, .micro_batches = true});
  strategy.border = &arriving.steps().border();
  const std::vector<Batch> halves{part(batch, 0, 2), part(batch, 2, 2)};
  for (int i = 0; i < 3; ++i) {
    strategy.asked.clear();
    arriving.launch(halves, 0.05);
    plain.launch(halves, 0.05);
    CHECK(arriving.metrics().loss == plain.metrics().loss);
    // Once a step, though there are two micro-batches; in the order in which forward needs them.
    CHECK(strategy.asked.size() == 4);
    CHECK(strategy.asked.front() == 2);
  }
  for (const auto& [name, value] : strategy.kept) CHECK(value == plain.value(name));
}

}  // namespace plexaura::testing::hooks_test
