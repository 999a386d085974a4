// If a strategy declares `agrees`, no weight changes before all buckets have been exchanged and the ranks
// have agreed on the update. A step that is given up before then changes nothing.

#include <chrono>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <thread>

#include "core/ops/binary.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"

namespace plexaura::testing::agree_test {

namespace {

const TensorType first{DType::float32, {6, 8}};
const TensorType second{DType::float32, {8, 2}};

LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  const Node seen = graph.buffer("seen", {DType::float32, {8}});
  const Node hidden = tanh(matmul(x, graph.parameter("first", first)));
  graph.update(seen, seen * 0.5 + sum(hidden, {.axes = {0}}));
  return {squared_error(matmul(hidden, graph.parameter("second", second)), t)};
}

std::vector<ParameterSpec> specs() {
  return {{"first", first, ParameterRole::trainable, Initialiser::uniform(0.5)},
          {"second", second, ParameterRole::trainable, Initialiser::uniform(0.5)},
          {"seen", {DType::float32, {8}}, ParameterRole::buffer, Initialiser::zeros()}};
}

Batch some_batch() {
  return {whole_numbers({DType::float32, {4, 6}}, 1), whole_numbers({DType::float32, {4, 2}}, 2)};
}

SmallTraining::Options options(Strategy* strategy) {
  return {.optimizer = {.kind = OptimizerSpec::Kind::adam}, .strategy = strategy};
}

// Exchanges every bucket in a separate thread, which signals the event when it has finished.
class Agreeing final : public Strategy, public GradientSum {
 public:
  StrategyParts parts() override { return {.gradients = this, .agrees = true}; }
  void begin(WeightsImmigration& border) override {
    border_ = &border;
    weight_ = border.emigrate("first");
    for (std::size_t i = 0; i < border.buckets().size(); ++i) exchanged_.push_back(border.make_event());
    final_.resize(exchanged_.size());
  }
  ~Agreeing() override { join(); }
  void gradients_ready(std::size_t bucket, Event& final) override { final_[bucket] = &final; }
  UpdateAnswer before_update(std::size_t bucket) override {
    calls += fmt::format("bucket {}, ", bucket);
    ExchangeEvent& done = *exchanged_[bucket];
    done.reset();
    threads_.emplace_back([& final = *final_[bucket], &done] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      final.wait();
      done.signal();
    });
    return {.event = &done};
  }
  void agree() override {
    calls += "agree";
    for (const auto& event : exchanged_) CHECK(event->passed());
    join();
    unchanged = border_->emigrate("first") == weight_;
    if (on_agree) on_agree();
  }

  std::string calls;
  bool unchanged = false;
  std::function<void()> on_agree;

 private:
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  WeightsImmigration* border_ = nullptr;
  Tensor weight_;
  std::vector<Event*> final_;
  std::vector<std::unique_ptr<ExchangeEvent>> exchanged_;
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("the ranks agree when all buckets have been exchanged and nothing is updated") {
  Agreeing strategy;
  SmallTraining run(test_backend(), specs(), model, some_batch(), options(&strategy));
  SmallTraining plain(test_backend(), specs(), model, some_batch(), options(nullptr));
  strategy.begin(run.steps().border());
  CHECK(run.step(some_batch(), 0.01).loss == plain.step(some_batch(), 0.01).loss);
  CHECK(strategy.calls == "bucket 0, bucket 1, bucket 2, agree");
  CHECK(strategy.unchanged);
  check_same_values(run.store(), plain.store());
}

TEST_CASE("a step that is given up before the ranks agree has never been") {
  Agreeing strategy;
  SmallTraining run(test_backend(), specs(), model, some_batch(), options(&strategy));
  SmallTraining plain(test_backend(), specs(), model, some_batch(), options(nullptr));
  strategy.begin(run.steps().border());
  run.step(some_batch(), 0.01);
  plain.step(some_batch(), 0.01);
  strategy.on_agree = [] { throw DeviceError("rank 1 was lost"); };
  CHECK_THROWS_AS(run.step(some_batch(), 0.01), DeviceError);
  check_same_values(run.store(), plain.store());
  run.give_up_step();
  strategy.on_agree = nullptr;
  for (int i = 0; i < 2; ++i) CHECK(run.step(some_batch(), 0.01).loss == plain.step(some_batch(), 0.01).loss);
  check_same_values(run.store(), plain.store());
}

}  // namespace plexaura::testing::agree_test
