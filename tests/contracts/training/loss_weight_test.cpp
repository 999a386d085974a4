// A loss that is a sum with a weight is divided by the weight of the whole step. So it does not matter how the samples are
// divided into micro-batches and among ranks, although these have different weights. Reference values come from a loss that
// divides in one batch of all samples.

#include <array>
#include <cmath>
#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/labels.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/contracts/ranks/rows_run.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::loss_weight_test {

namespace {

using Kind = OptimizerSpec::Kind;

constexpr std::int64_t samples = 8;

std::vector<ParameterSpec> specs(DType dtype) {
  return {{"w", {dtype, {6, 2}}, ParameterRole::trainable, Initialiser::uniform(0.5)},
          {"b", {dtype, {2}}, ParameterRole::trainable, Initialiser::zeros()}};
}

// The errors of elements whose target is positive; the others are masked. `divides`: the model divides by itself.
SmallTraining::Model masked(bool divides) {
  return [divides](Graph& graph, const Node& x, const Node& t) -> LossOutputs {
    const DType dtype = x.dtype();
    const Node y =
        tanh(matmul(x, graph.parameter("w", {dtype, {6, 2}})) + graph.parameter("b", {dtype, {2}}));
    const Node mask = cast(gt(t, 0), dtype);
    const Node loss = sum(square(y - t) * mask);
    if (divides) return {.loss = loss / sum(mask)};
    return {.loss = loss, .weight = sum(mask)};
  };
}

Batch whole_batch(DType dtype) {
  return {whole_numbers({dtype, {samples, 6}}, 3, 2), whole_numbers({dtype, {samples, 2}}, 5, 2)};
}

std::vector<Batch> parts_of(const Batch& batch, const std::vector<std::int64_t>& sizes) {
  std::vector<Batch> parts;
  for (std::int64_t first = 0; const std::int64_t size : sizes) {
    parts.push_back(part(batch, first, size));
    first += size;
  }
  return parts;
}

void check_close(const ParameterStore& a, const ParameterStore& b, double tolerance) {
  for (const ParameterSpec& spec : a.specs()) {
    CAPTURE(spec.name);
    const std::vector<double> left = a.read(spec.name).to_doubles();
    const std::vector<double> right = b.read(spec.name).to_doubles();
    for (std::size_t i = 0; i < left.size(); ++i) CHECK(std::abs(left[i] - right[i]) <= tolerance);
  }
}

std::shared_ptr<const SampleSource> rows(std::int64_t count) { return std::make_shared<CountingRows>(count); }

ParameterStore classifier_store() {
  return ParameterStore(
      {{"first", {DType::float64, {4, 8}}, ParameterRole::trainable, Initialiser::uniform(0.5)},
       {"second", {DType::float64, {8, 3}}, ParameterRole::trainable, Initialiser::uniform(0.5)}},
      7);
}

// Classifies rows() with class weights, and ignores the last of the three classes.
LossOutputs weighted_classifier(const ModelInputs& inputs) {
  Graph& graph = inputs.graph();
  const Node hidden = tanh(matmul(inputs["samples"], graph.parameter("first", {DType::float64, {4, 8}})));
  const Node logits = matmul(hidden, graph.parameter("second", {DType::float64, {8, 3}}));
  const Node weights = graph.constant(Tensor::of<double>({3}, {1, 4, 9}));
  const Node labels = inputs["labels"];
  const Node of_samples = sum(one_hot(labels, 3, DType::float64) * weights, {.axes = {1}});
  const Node counts = cast(ne(labels, 2), DType::float64);
  return {.loss = softmax_cross_entropy(logits, labels, weights, {.reduction = Reduction::sum, .ignore = 2}),
          .weight = sum(of_samples * counts)};
}

struct Trained {
  std::vector<double> weights;
  std::vector<double> losses;
  double train_loss = 0;
  double validation_loss = 0;
};

class Noted final : public TrainingObserver {
 public:
  explicit Noted(Trained& trained) : trained_(trained) {}
  void step(const StepRecord& record, std::int64_t) override { trained_.losses.push_back(record.loss); }
  void epoch(const EpochRecord& record) override {
    trained_.train_loss = record.train_loss;
    trained_.validation_loss = record.val_loss;
  }

 private:
  Trained& trained_;
};

Trained trained(int rank_count, std::int64_t micro_batches) {
  Trained result;
  ThreadRanks(rank_count).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = classifier_store();
    SummingStrategy strategy(ranks);
    TrainerOptions options{
        .batch_size = 8, .micro_batches = micro_batches, .epochs = 2, .learning_rate = 0.1, .seed = 3};
    Trainer trainer({weighted_classifier, store, *backend, rows(29), rows(13), &ranks, &strategy}, options);
    Trained mine;
    Noted noted(mine);
    trainer.run(noted);
    for (const char* name : {"first", "second"})
      for (const double value : store.read(name).to_doubles()) mine.weights.push_back(value);
    if (ranks.rank() == 0) result = mine;
  });
  return result;
}

}  // namespace

TEST_CASE(
    "loss weight: micro-batches with different weights make the step of one batch, with every optimizer") {
  const Batch batch = whole_batch(DType::float64);
  for (const OptimizerSpec& optimizer : std::vector<OptimizerSpec>{{.momentum = 0.5, .weight_decay = 0.01},
                                                                   {.kind = Kind::adam},
                                                                   {.kind = Kind::lars, .momentum = 0.5},
                                                                   {.kind = Kind::lamb},
                                                                   {.max_gradient_norm = 0.01},
                                                                   {.scaled_loss = true}}) {
    CAPTURE(optimizer_name(optimizer));
    CAPTURE(optimizer.max_gradient_norm);
    const double scale = optimizer.scaled_loss ? 1024 : 1;
    const std::vector<std::int64_t> sizes{1, 2, 0, 3, 2};
    SmallTraining one(test_backend(), specs(DType::float64), masked(true), batch,
                      {.optimizer = optimizer, .sizes = {samples}, .loss_scale = scale});
    SmallTraining whole(test_backend(), specs(DType::float64), masked(false), batch,
                        {.optimizer = optimizer, .sizes = {samples}, .loss_scale = scale});
    SmallTraining many(test_backend(), specs(DType::float64), masked(false), batch,
                       {.optimizer = optimizer, .sizes = sizes, .micro_batches = true, .loss_scale = scale});
    for (int i = 0; i < 3; ++i) {
      const StepMetrics expected = one.step(batch, 0.05);
      CHECK(whole.step(batch, 0.05).loss == doctest::Approx(expected.loss).epsilon(1e-12));
      many.launch(parts_of(batch, sizes), 0.05);
      CHECK(many.metrics().loss == doctest::Approx(expected.loss).epsilon(1e-12));
      CHECK(many.metrics().samples == samples);
      check_close(whole.store(), one.store(), 1e-12);
      check_close(many.store(), one.store(), 1e-12);
    }
  }
}

TEST_CASE("loss weight: a step whose weight is 0 has the loss 0 and changes no weights") {
  Batch batch = whole_batch(DType::float32);
  for (float& target : batch.t.as<float>()) target = -1;
  SmallTraining run(test_backend(), specs(DType::float32), masked(false), batch, {.sizes = {samples}});
  const Tensor before = run.value("w");
  CHECK(run.step(batch, 0.1).loss == 0);
  CHECK(run.metrics().weight == 0);
  CHECK(run.value("w") == before);
}

TEST_CASE("loss weight: the loss of a trainer does not depend on ranks and micro-batches") {
  const Trained one = trained(1, 1);
  REQUIRE(one.losses.size() == 8);
  for (const auto& [ranks, micro_batches] : std::vector<std::pair<int, int>>{{1, 3}, {2, 1}, {3, 2}}) {
    CAPTURE(ranks);
    const Trained other = trained(ranks, micro_batches);
    REQUIRE(other.losses.size() == one.losses.size());
    for (std::size_t i = 0; i < one.losses.size(); ++i)
      CHECK(other.losses[i] == doctest::Approx(one.losses[i]).epsilon(1e-12));
    for (std::size_t i = 0; i < one.weights.size(); ++i)
      CHECK(other.weights[i] == doctest::Approx(one.weights[i]).epsilon(1e-10));
    CHECK(other.validation_loss == doctest::Approx(one.validation_loss).epsilon(1e-12));
  }
}

TEST_CASE("loss weight: the training loss of an epoch counts each step by its weight") {
  const auto backend = open_backend(test_backend().info().name);
  ParameterStore store = classifier_store();
  // The rate is too small to change a weight, so the training loss is the loss over the same samples at once.
  Trainer trainer({weighted_classifier, store, *backend, rows(29), rows(29)},
                  {.batch_size = 8, .learning_rate = 1e-30});
  Trained found;
  Noted noted(found);
  trainer.run(noted);
  CHECK(found.train_loss == doctest::Approx(found.validation_loss).epsilon(1e-12));
}

TEST_CASE("loss weight: refused if it is of another type, or if a gradient would pass through it") {
  const ParameterStore store(specs(DType::float32));
  const auto refusal = [&](const std::function<Node(Graph&, const Node&)>& weight) {
    Graph graph;
    const Node w = graph.parameter("w", {DType::float32, {6, 2}});
    const Node loss = sum(matmul(graph.input("x", {DType::float32, {4, 6}}), w) +
                          graph.parameter("b", {DType::float32, {2}}));
    return user_error([&] { training_outputs(graph, {.loss = loss, .weight = weight(graph, w)}, store, 4); });
  };
  CHECK(refusal([](Graph& graph, const Node&) {
          return graph.input("n", {DType::float64, {}});
        }) ==
        "the weight of the loss is float64[] and must be float32[]; reduce it with sum(), and cast() it");
  CHECK(refusal([](Graph&, const Node& w) { return sum(abs(w)); }) ==
        "the weight of the loss depends on the trainable parameter 'w', and no gradient passes through it; "
        "compute it from the data, or take stop_gradient() of the parameter");
  CHECK(refusal([](Graph&, const Node& w) { return sum(cast(gt(w, 0), DType::float32)); }).empty());
  Graph other;
  CHECK(refusal([&](Graph&, const Node&) {
          return other.input("n", {DType::float32, {}});
        }) == "the weight of the loss belongs to another graph than the loss; build both in one");
}

TEST_CASE("loss weight: a model has one for all sizes of batches and modes, or none") {
  ParameterStore store = classifier_store();
  const ModelBuilder model = [](const ModelInputs& inputs) {
    LossOutputs outputs = weighted_classifier(inputs);
    if (inputs.graph().mode() == Mode::inference) outputs.weight = {};
    return outputs;
  };
  CHECK(user_error([&] {
          Trainer({model, store, test_backend(), rows(8), rows(8)}, {.batch_size = 8});
        }) ==
        "the model gives LossOutputs::weight for one size of batch or mode, and none for another; give it "
        "always, or never");
}

TEST_CASE("loss weight: refused by a strategy that sums gradients and not their weights") {
  class OwnTails final : public SummingStrategy, public WeightExchange {
   public:
    using SummingStrategy::SummingStrategy;
    StrategyParts parts() override {
      return {.gradients = this, .weights = this, .scope = GradientScope::local};
    }
  };
  ParameterStore store = classifier_store();
  SingleProcess alone;
  OwnTails strategy(alone);
  CHECK(user_error([&] {
          Trainer({weighted_classifier, store, test_backend(), rows(8), nullptr, &alone, &strategy},
                  {.batch_size = 8});
        }) ==
        "the loss has weights, of model.class_weights or LossOutputs::weight, and the strategy sums "
        "gradients, but "
        "not these weights; use another distributed.strategy, or set distributed.group to 1");
}

}  // namespace plexaura::testing::loss_weight_test
