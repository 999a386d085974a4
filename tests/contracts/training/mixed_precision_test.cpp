// A store with mixed precision is all that training in 16 bits needs: programs compute in 16 bits, weights
// and gradients stay in float32, and the loss scale of float16 is kept on the device.

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <optional>
#include <utility>

#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/labels.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "models/layers/batch_norm.h"
#include "models/layers/convolution.h"
#include "models/layers/linear.h"
#include "models/predictor.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/data/dataset.h"
#include "training/loop/trainer.h"
#include "training/programs/optimizer.h"

namespace plexaura::testing::mixed_precision_test {

namespace {

const ArenaTypes in_float32 = ArenaTypes::all(DType::float32);
const ArenaTypes in_bfloat16 = ArenaTypes::mixed(DType::bfloat16);
const ArenaTypes in_float16 = ArenaTypes::mixed(DType::float16);

// Images of 8x8: an image of the class plus noise.
class Patterns final : public DatasetOf<float> {
 public:
  std::int64_t size() const override { return 64; }
  Shape sample_shape() const override { return {1, 8, 8}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t index) const override { return index % 4; }
  void read(std::int64_t index, const SampleContext&, std::span<float> sample,
            std::int64_t& of) const override {
    of = label(index);
    Random of_class(static_cast<std::uint64_t>(of) + 1);
    Random noise(static_cast<std::uint64_t>(index) + 100);
    for (float& pixel : sample)
      pixel = static_cast<float>((of_class.between(0, 1) > 0.6 ? 0.8 : 0.0) + noise.between(0, 0.4));
  }

 private:
  std::vector<std::string> names_{"0", "1", "2", "3"};
};

class Net final : public Module {
 public:
  void members(MemberVisitor& visit) override {
    visit("conv", conv_);
    visit("norm", norm_);
    visit("out", out_);
  }
  Node operator()(Operand x) const {
    return out_(flatten(max_pool2d(relu(norm_(conv_(x))), {.kernel = {2, 2}, .stride = Size2d{2, 2}})));
  }

 private:
  layers::Conv2d conv_{1, 8, {3, 3}, {.padding = {1, 1}, .bias = false}};
  layers::BatchNorm2d norm_{8};
  layers::Linear out_{128, 4};
};

struct Last final : TrainingObserver {
  void epoch(const EpochRecord& record) override { last = record; }
  EpochRecord last;
};

struct Run {
  explicit Run(const ArenaTypes& types, TrainerOptions options = six_epochs())
      : store(make_store(net, DType::float32, 1)),
        trainer({model(), typed(store, types), test_backend(), std::make_shared<Patterns>(),
                 std::make_shared<Patterns>()},
                std::move(options)) {}

  static TrainerOptions six_epochs() {
    return {.batch_size = 16,
            .epochs = 6,
            .optimizer = {.kind = OptimizerSpec::adam},
            .learning_rate = 0.01,
            .seed = 1};
  }
  static ParameterStore& typed(ParameterStore& store, const ArenaTypes& types) {
    store.set_types(types);
    return store;
  }
  ModelBuilder model() {
    return [this](const ModelInputs& inputs) { return build_loss(net(inputs["samples"]), inputs["labels"]); };
  }
  static LossOutputs build_loss(const Node& logits, const Node& labels) {
    return {.loss = softmax_cross_entropy(logits, labels),
            .metrics = {{.name = "accuracy", .sum = top_k_correct(logits, labels)}}};
  }

  std::vector<Tensor> values() const {
    std::vector<Tensor> found;
    for (const ParameterSpec& spec : store.specs()) {
      found.push_back(store.read(spec.name));
      for (std::int64_t i = 0; spec.role == ParameterRole::trainable && i < store.states(); ++i)
        found.push_back(store.read_state(i, spec.name));
    }
    return found;
  }

  Net net;
  ParameterStore store;
  Trainer trainer;
  Last seen;
};

constexpr std::int64_t samples = 4;
const TensorType weights{DType::float32, {6, 3}};
const TensorType channels{DType::float32, {6}};

// A linear model with a running mean of its inputs.
struct Line {
  explicit Line(const OptimizerSpec& optimizer, const ArenaTypes& types = in_float16) {
    store.set_types(types);
    seen = graph.buffer("seen", channels);
    const Node x = graph.input("x", {DType::float32, {samples, 6}});
    graph.update(seen, seen * 0.5 + mean(x, {.axes = {0}}) * 0.5);
    const Node y = matmul(x, graph.parameter("w", weights)) + graph.parameter("b", {DType::float32, {3}});
    steps = std::make_unique<Optimizer>(
        LossOutputs{mean(square(y - graph.input("t", {DType::float32, {samples, 3}})))}, store,
        test_backend(), OptimizerOptions{.optimizer = optimizer, .learning_rate = 0.01});
  }

  double step() { return steps->step({{"x", x}, {"t", t}}); }
  void set_scale(float scale, float good_steps = 0) { store.write_loss_scale({scale, good_steps, 0}); }

  std::vector<Tensor> values() const {
    std::vector<Tensor> found{store.read("w"), store.read("b"), store.read("seen")};
    for (std::int64_t i = 0; i < store.states(); ++i)
      for (const char* name : {"w", "b"}) found.push_back(store.read_state(i, name));
    return found;
  }

  Graph graph;
  ParameterStore store{{{"w", weights, ParameterRole::trainable, Initialiser::normal(1)},
                        {"b", {DType::float32, {3}}, ParameterRole::trainable, Initialiser::zeros()},
                        {"seen", channels, ParameterRole::buffer, Initialiser::zeros()}}};
  Node seen;
  std::unique_ptr<Optimizer> steps;
  Random random{3};
  Tensor x = make({DType::float32, {samples, 6}}, between(-1, 1), random);
  Tensor t = make({DType::float32, {samples, 3}}, between(-1, 1), random);
};

const std::vector<OptimizerSpec> optimizers{
    {},
    {.momentum = 0.9, .nesterov = true, .max_gradient_norm = 0.5},
    {.kind = OptimizerSpec::adam},
    {.kind = OptimizerSpec::lars, .momentum = 0.9, .weight_decay = 0.1},
    {.kind = OptimizerSpec::lamb, .weight_decay = 0.1},
    {.kind = OptimizerSpec::rmsprop, .momentum = 0.9, .centered = true},
    {.kind = OptimizerSpec::adagrad, .lr_decay = 0.1}};

}  // namespace

TEST_CASE("a net with batch norm learns in 16 bits what it learns in float32") {
  Run expected(in_float32);
  expected.trainer.run(expected.seen);
  CHECK(value_of("accuracy", expected.seen.last.val_metrics) == 1);
  for (const ArenaTypes& types : {in_bfloat16, in_float16}) {
    CAPTURE(to_text(types));
    Run run(types);
    run.trainer.run(run.seen);
    CHECK(value_of("accuracy", run.seen.last.val_metrics) == 1);
    CHECK(std::abs(run.seen.last.val_loss - expected.seen.last.val_loss) < 0.02);
    CHECK(run.store.read("out.weight").dtype() == DType::float32);
    CHECK(run.store.read_gradient("conv.weight").dtype() == DType::float32);
    for (const ParameterSpec& spec : run.store.specs())
      CHECK(run.store.read_shadow(spec.name) == run.store.read(spec.name).cast(types.precision()));
  }
}

TEST_CASE("a prediction is computed as a training is") {
  Run run(in_bfloat16);
  Predictor predict([&](const Node& x) { return run.net(x); }, run.store, test_backend());
  Random random(1);
  const Tensor logits = predict(make({DType::float32, {2, 1, 8, 8}}, between(0, 1), random));
  CHECK(logits.type() == TensorType{DType::float32, {2, 4}});
  for (const float logit : logits.as<float>()) CHECK(static_cast<float>(bfloat16(logit)) == logit);
}

TEST_CASE("a run in 16 bits that stops and goes on ends bitwise equal") {
  for (const auto& [types, ema] : {std::pair(in_bfloat16, std::optional<double>()),
                                   {in_float16, std::optional<double>()},
                                   {in_float16, std::optional(0.9)}}) {
    CAPTURE(to_text(types));
    TrainerOptions options = Run::six_epochs();
    options.optimizer.ema = ema;
    Run whole(types, options);
    whole.trainer.run();
    const TemporaryFolder folder;
    options.output = folder.path();
    options.steps = 7;
    {
      Run first(types, options);
      first.trainer.run();
    }
    options.steps = std::nullopt;
    Run second(types, options);
    REQUIRE(second.trainer.resume());
    second.trainer.run();
    CHECK(second.values() == whole.values());
    if (types.scales_loss()) CHECK(second.store.read_loss_scale() == whole.store.read_loss_scale());
  }
}

TEST_CASE("a step whose gradients are not finite changes the loss scale alone") {
  for (const OptimizerSpec& optimizer : optimizers) {
    CAPTURE(optimizer_name(optimizer));
    Line line(optimizer);
    line.set_scale(8);
    line.step();
    const std::vector<Tensor> before = line.values();
    line.set_scale(LossScale::most, 5);
    CHECK(std::isfinite(line.step()));
    CHECK(line.values() == before);
    CHECK(line.store.read_loss_scale() == LossScale{LossScale::most / 2, 0, 1});
    line.set_scale(8, 5);
    line.step();
    CHECK(line.store.read_loss_scale() == LossScale{8, 6, 0});
    CHECK(line.store.read("w") != before[0]);
    CHECK(line.store.read("seen") != before[2]);
  }
}

TEST_CASE("steps that were skipped leave no trace in those behind them") {
  for (const OptimizerSpec& optimizer : optimizers) {
    CAPTURE(optimizer_name(optimizer));
    Line skipping(optimizer);
    skipping.set_scale(LossScale::most);
    for (int step = 0; step < 30; ++step) skipping.step();
    const LossScale scale = skipping.store.read_loss_scale();
    REQUIRE(scale.skipped_steps > 0);
    REQUIRE(scale.good_steps == 30 - scale.skipped_steps);
    Line straight(optimizer);
    straight.set_scale(scale.scale);
    for (float step = 0; step < scale.good_steps; ++step) straight.step();
    CHECK(skipping.values() == straight.values());
  }
}

TEST_CASE("a loss scale doubles after many good steps, up to its limit, and halves down to another") {
  Line line({});
  line.set_scale(8, LossScale::growth_steps - 1);
  line.step();
  CHECK(line.store.read_loss_scale() == LossScale{16, 0, 0});
  line.x = Tensor(line.x.type());
  line.t = Tensor(line.t.type());  // makes the gradient zero
  line.set_scale(LossScale::most, LossScale::growth_steps - 1);
  line.step();
  CHECK(line.store.read_loss_scale() == LossScale{LossScale::most, 0, 0});
  std::ranges::fill(line.t.as<float>(), std::numeric_limits<float>::infinity());
  line.set_scale(LossScale::least);
  CHECK(user_error([&] { line.step(); }).starts_with("the loss of step 3 is infinite: "));
  CHECK(line.store.read_loss_scale() == LossScale{LossScale::least, 0, 1});
  CHECK(line.store.updates() == 3);
}

TEST_CASE("with a scale, the smallest gradients keep their digits") {
  Line line({});
  for (float& element : line.x.as<float>()) element *= 1e-6F;
  const auto gradient_at = [&](float scale) {
    line.set_scale(scale);
    line.step();
    std::vector<double> gradient = line.store.read_gradient("w").to_doubles();
    for (double& element : gradient) element /= scale;
    return gradient;
  };
  const std::vector<double> rough = gradient_at(1);
  const std::vector<double> fine = gradient_at(65536);
  double worst = 0;
  for (std::size_t i = 0; i < fine.size(); ++i) {
    CHECK(fine[i] != 0);
    worst = std::max(worst, std::abs(rough[i] - fine[i]) / std::abs(fine[i]));
  }
  CHECK(worst > 0.05);
}

}  // namespace plexaura::testing::mixed_precision_test
