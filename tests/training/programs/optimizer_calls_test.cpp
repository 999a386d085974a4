// Tests the parts of a step as separate calls.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include "core/ops/all_reduce.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/programs/optimizer.h"

namespace plexaura::testing::optimizer_calls_test {

namespace {

constexpr std::int64_t samples = 8;

ParameterStore make_store() {
  const TensorType weights{DType::float64, {3, 2}};
  ParameterStore store({{"w", weights, ParameterRole::trainable, Initialiser::ones()},
                        {"b", {DType::float64, {2}}, ParameterRole::trainable, Initialiser::zeros()},
                        {"seen", {DType::float64, {3}}, ParameterRole::buffer, Initialiser::zeros()}});
  Random random{5};
  store.write("w", make(weights, between(-1, 1), random));
  return store;
}

Tensor batch_of(std::int64_t count, std::uint64_t seed) {
  Random random{seed};
  return make({DType::float64, {count, 3}}, between(-1, 1), random);
}

// Returns rows [first, first + count).
Tensor rows(const Tensor& whole, std::int64_t first, std::int64_t count) {
  Tensor part({DType::float64, {count, 3}});
  for (std::int64_t i = 0; i < 3 * count; ++i)
    part.as<double>()[static_cast<std::size_t>(i)] =
        whole.as<double>()[static_cast<std::size_t>(3 * first + i)];
  return part;
}

// A linear model of `count` samples with dropout, which also keeps the mean of its last batch.
struct Model {
  explicit Model(ParameterStore& store, std::int64_t count, OptimizerOptions options = {}, bool drops = true)
      : x(graph.input("x", {DType::float64, {count, 3}})),
        optimizer(loss(drops), store, test_backend(), options) {}

  LossOutputs loss(bool drops) {
    const Node seen = graph.buffer("seen", {DType::float64, {3}});
    graph.update(seen, seen * 0.5 + mean(x, {.axes = {0}}) * 0.5);
    const Node in = drops ? dropout(x, {.p = 0.25}) : x;
    const Node out = matmul(in, graph.parameter("w", {DType::float64, {3, 2}})) +
                     graph.parameter("b", {DType::float64, {2}}) - 1;
    return {.loss = mean(square(out)), .metrics = {{.name = "largest", .mean = max(abs(out))}}};
  }

  Graph graph;
  Node x;
  Optimizer optimizer;
};

void check_same(const ParameterStore& a, const ParameterStore& b) {
  for (const char* name : {"w", "b", "seen"}) CHECK(a.read(name) == b.read(name));
  for (std::int64_t i = 0; i < a.states(); ++i) CHECK(a.read_state(i, "w") == b.read_state(i, "w"));
}

void check_near(const ParameterStore& a, const ParameterStore& b) {
  for (const char* name : {"w", "b"}) {
    const std::vector<double> left = a.read(name).to_doubles();
    const std::vector<double> right = b.read(name).to_doubles();
    for (std::size_t i = 0; i < left.size(); ++i) CHECK(left[i] == doctest::Approx(right[i]).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("the gradients of one batch and an update have the bits of a step") {
  for (const OptimizerSpec& rule :
       {OptimizerSpec{.momentum = 0.9, .weight_decay = 0.1},
        {.kind = OptimizerSpec::adamw, .weight_decay = 0.1, .max_gradient_norm = 0.1},
        {.kind = OptimizerSpec::lamb},
        {.kind = OptimizerSpec::rmsprop}}) {
    CAPTURE(optimizer_name(rule));
    ParameterStore first = make_store();
    ParameterStore second = make_store();
    Model whole(first, samples, {.optimizer = rule, .seed = 3});
    Model parts(second, samples, {.optimizer = rule, .seed = 3});
    for (std::uint64_t step = 1; step <= 4; ++step) {
      const Tensor batch = batch_of(samples, step);
      const double loss = whole.optimizer.step({{"x", batch}});
      CHECK(parts.optimizer.gradients({{"x", batch}}) == loss);
      CHECK(parts.optimizer.metric("largest") == whole.optimizer.metric("largest"));
      parts.optimizer.update();
      CHECK(parts.optimizer.steps() == whole.optimizer.steps());
      check_same(second, first);
    }
    const Tensor last = batch_of(samples, 9);  // step() may take over after update()
    CHECK(parts.optimizer.step({{"x", last}}) == whole.optimizer.step({{"x", last}}));
    check_same(second, first);
  }
}

TEST_CASE("four batches and an update make the step of one batch of all their samples, also with dropout") {
  for (const auto kind : {OptimizerSpec::sgd, OptimizerSpec::adam}) {
    ParameterStore first = make_store();
    ParameterStore second = make_store();
    Model whole(first, samples, {.optimizer = {.kind = kind}});
    Model parts(second, samples / 4, {.optimizer = {.kind = kind}});
    for (std::uint64_t step = 1; step <= 3; ++step) {
      const Tensor batch = batch_of(samples, step);
      const double loss = whole.optimizer.step({{"x", batch}});
      double sum = 0;
      for (std::int64_t i = 0; i < 4; ++i) sum += parts.optimizer.gradients({{"x", rows(batch, 2 * i, 2)}});
      CHECK(sum / 4 == doctest::Approx(loss).epsilon(1e-12));
      parts.optimizer.update();
      check_near(second, first);
    }
  }
}

TEST_CASE("buffers are updated by each batch") {
  ParameterStore store = make_store();
  Model model(store, 2);
  const Tensor ones = Tensor::of<double>({2, 3}, {1, 1, 1, 1, 1, 1});
  model.optimizer.gradients({{"x", ones}});
  CHECK(store.read("seen").to_doubles() == std::vector<double>{0.5, 0.5, 0.5});
  model.optimizer.gradients({{"x", ones}});
  CHECK(store.read("seen").to_doubles() == std::vector<double>{0.75, 0.75, 0.75});
  model.optimizer.update();
  CHECK(store.read("seen").to_doubles() == std::vector<double>{0.75, 0.75, 0.75});
}

TEST_CASE("a limit on the norm makes the step of max_gradient_norm, and returns the norm before") {
  ParameterStore first = make_store();
  ParameterStore second = make_store();
  Model whole(first, samples, {.optimizer = {.max_gradient_norm = 0.25}});
  Model parts(second, samples);
  const Tensor batch = batch_of(samples, 1);
  whole.optimizer.step({{"x", batch}});
  parts.optimizer.gradients({{"x", batch}});
  double squares = 0;
  for (const char* name : {"w", "b"})
    for (const double gradient : second.read_gradient(name).to_doubles()) squares += gradient * gradient;
  CHECK(parts.optimizer.clip_by_norm(0.25) == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
  CHECK(std::sqrt(squares) > 0.25);
  CHECK(parts.optimizer.clip_by_norm(1) == doctest::Approx(0.25).epsilon(1e-12));
  parts.optimizer.update();
  check_near(second, first);
}

TEST_CASE("a limit on values cuts each gradient, after the mean over the batches") {
  ParameterStore store = make_store();
  Model model(store, samples / 2, {.learning_rate = 1});
  const Tensor before = store.read("w");
  const Tensor batch = batch_of(samples, 1);
  std::vector<double> mean(6);
  for (const std::int64_t first : {0, 4}) {
    model.optimizer.gradients({{"x", rows(batch, first, 4)}});
    const std::vector<double> gradient = store.read_gradient("w").to_doubles();
    for (std::size_t i = 0; i < 6; ++i) mean[i] += gradient[i] / 2;
  }
  double largest = 0;
  for (const double each : mean) largest = std::max(largest, std::abs(each));
  const double limit = largest / 2;
  CHECK(model.optimizer.clip_by_value(limit) >= doctest::Approx(largest).epsilon(1e-12));
  model.optimizer.update();
  const std::vector<double> after = store.read("w").to_doubles();
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(after[i] ==
          doctest::Approx(before.to_doubles()[i] - std::clamp(mean[i], -limit, limit)).epsilon(1e-12));
}

TEST_CASE("a batch whose loss or gradient is not finite drops the step, and nothing has changed") {
  const double infinite = std::numeric_limits<double>::infinity();
  ParameterStore store = make_store();
  Model model(store, 2, {.optimizer = {.momentum = 0.9}}, false);
  const Tensor sound = batch_of(2, 1);
  model.optimizer.gradients({{"x", sound}});
  const Tensor seen = store.read("seen");
  const Tensor weights = store.read("w");
  const std::string text = user_error([&] {
    model.optimizer.gradients({{"x", Tensor::of<double>({2, 3}, {1, infinite, 1, 1, 1, 1})}});
  });
  CHECK(text.starts_with("the loss of step 1 is "));
  CHECK(text.ends_with(
      "weights and state are as before this step, and the gradients since the last update were "
      "dropped"));
  CHECK(store.read("seen") == seen);
  CHECK(
      user_error([&] { model.optimizer.update(); }).starts_with("Optimizer::update: there are no gradients"));
  CHECK(store.read("w") == weights);
  CHECK(model.optimizer.steps() == 0);

  const TensorType two{DType::float64, {2}};
  Graph graph;
  ParameterStore roots({{"r", two, ParameterRole::trainable, Initialiser::ones()}});
  const Node x = graph.input("x", two);
  const Node root = sqrt(x * graph.parameter("r", two));  // has no finite derivative at 0
  Optimizer optimizer({.loss = mean(where(gt(x, 0), root, 0))}, roots, test_backend());
  CHECK(user_error([&] {
          optimizer.gradients({{"x", Tensor::of<double>({2}, {1, 0})}});
        }).find("with NaN at element 1 of the gradient of 'r'") != std::string::npos);
  optimizer.gradients({{"x", Tensor::of<double>({2}, {1, 2})}});
  optimizer.update();
  CHECK(optimizer.steps() == 1);
}

TEST_CASE("gradients whose sum is too large are refused") {
  const TensorType one{DType::float64, {}};
  Graph graph;
  ParameterStore store({{"w", one, ParameterRole::trainable, Initialiser::ones()}});
  Optimizer optimizer({.loss = graph.parameter("w", one) * graph.input("x", one)}, store, test_backend());
  for (int i = 0; i < 2; ++i) optimizer.gradients({{"x", Tensor::scalar(1.5e308)}});
  CHECK(user_error([&] {
          optimizer.update();
        }).starts_with("Optimizer::update: the mean of the gradients is not finite"));
  CHECK(store.read("w").to_doubles()[0] == 1);
}

TEST_CASE("another optimizer of the store may make steps between gradients and update") {
  const TensorType one{DType::float64, {}};
  const auto run = [&](bool between) {
    ParameterStore store({{"a", one, ParameterRole::trainable, Initialiser::ones()},
                          {"b", one, ParameterRole::trainable, Initialiser::ones()}});
    Graph of_a;
    Graph of_b;
    const auto loss = [&](Graph& graph) {
      return LossOutputs{mean(square(graph.parameter("a", one) * graph.parameter("b", one) - 3))};
    };
    Optimizer a(loss(of_a), store, test_backend(), {.parameters = {"a"}});
    Optimizer b(loss(of_b), store, test_backend(), {.parameters = {"b"}});
    for (int i = 0; i < 2; ++i) a.gradients({});
    const double gradient = store.read_gradient("a").to_doubles()[0];
    CHECK(gradient == -4);
    if (between) b.step({});
    a.update();
    return store.read("a").to_doubles()[0];
  };
  CHECK(run(false) == doctest::Approx(1.04));
  CHECK(run(true) == run(false));
}

TEST_CASE("separate calls in another order are refused") {
  const TemporaryFolder folder;
  ParameterStore store = make_store();
  Model model(store, 2);
  Optimizer& optimizer = model.optimizer;
  const Tensor batch = batch_of(2, 1);
  const auto refusal = [&](const auto& call) { return user_error(call); };
  CHECK(refusal([&] { optimizer.update(); }).starts_with("Optimizer::update: there are no gradients"));
  CHECK(refusal([&] {
          optimizer.clip_by_norm(1);
        }).starts_with("Optimizer::clip_by_norm: there are no gradients"));
  for (int i = 0; i < 3; ++i) optimizer.gradients({{"x", batch}});
  const std::string waiting =
      "the gradients of 3 batches wait for update(); call it first, or drop_gradients()";
  CHECK(refusal([&] { optimizer.step({{"x", batch}}); }) == "Optimizer::step: " + waiting);
  CHECK(refusal([&] { optimizer.save(folder.path()); }) == "Optimizer::save: " + waiting);
  CHECK(refusal([&] { optimizer.clip_by_norm(0); }) ==
        "Optimizer::clip_by_norm: the limit is 0; it must be a number above 0");
  CHECK(refusal([&] { optimizer.clip_by_value(std::nan("")); }) ==
        "Optimizer::clip_by_value: the limit is nan; it must be a number above 0");
  optimizer.clip_by_value(1);
  CHECK(refusal([&] {
          optimizer.gradients({{"x", batch}});
        }).starts_with("Optimizer::gradients: the gradients of this step were limited"));
  optimizer.drop_gradients();
  CHECK(refusal([&] { optimizer.update(); }).starts_with("Optimizer::update: there are no gradients"));
  optimizer.gradients({{"x", batch}});
  optimizer.update();
  optimizer.save(folder.path());
  CHECK(optimizer.steps() == 1);
}

TEST_CASE("a batch with wrong feeds drops the gradients of the step, which are never counted twice") {
  ParameterStore store = make_store();
  Model model(store, 2);
  const Tensor batch = batch_of(2, 1);
  for (int i = 0; i < 3; ++i) model.optimizer.gradients({{"x", batch}});
  CHECK(!user_error([&] { model.optimizer.gradients({}); }).empty());
  CHECK(
      user_error([&] { model.optimizer.update(); }).starts_with("Optimizer::update: there are no gradients"));
  CHECK(model.optimizer.steps() == 0);
}

TEST_CASE("what a model sums over all ranks is in separate calls, too, what the only one has") {
  const TensorType two{DType::float64, {2}};
  ParameterStore store({{"w", two, ParameterRole::trainable, Initialiser::ones()}});
  Graph graph;
  const Node loss = mean(all_reduce_sum(graph.parameter("w", two)) * graph.input("x", two));
  Optimizer optimizer({.loss = loss}, store, test_backend(), {.learning_rate = 1});
  optimizer.gradients({{"x", Tensor::of<double>({2}, {1, 2})}});
  optimizer.update();
  CHECK(store.read("w").to_doubles() == std::vector<double>{0.5, 0});
}

TEST_CASE("a loss with a weight is left to step()") {
  const TensorType two{DType::float64, {2}};
  ParameterStore store({{"w", two, ParameterRole::trainable, Initialiser::ones()}});
  Graph graph;
  const Node x = graph.input("x", two);
  Optimizer optimizer({.loss = sum(graph.parameter("w", two) * x), .weight = sum(x)}, store, test_backend());
  CHECK(user_error([&] {
          optimizer.gradients({{"x", Tensor::of<double>({2}, {1, 2})}});
        }).starts_with("Optimizer::gradients: the loss has a weight"));
  CHECK(optimizer.step({{"x", Tensor::of<double>({2}, {1, 2})}}) == 1);
}

TEST_CASE("gradients in bfloat16 train, and those in float16 are left to step()") {
  for (const DType narrow : {DType::bfloat16, DType::float16}) {
    const TensorType two{DType::float32, {2}};
    ParameterStore store({{"w", two, ParameterRole::trainable, Initialiser::ones()}});
    store.set_types(ArenaTypes::mixed(narrow));
    Graph graph;
    const Node loss = mean(square(graph.parameter("w", two) * graph.input("x", two)));
    Optimizer optimizer({.loss = loss}, store, test_backend(), {.learning_rate = 0.25});
    const auto call = [&] { optimizer.gradients({{"x", Tensor::of<float>({2}, {1, 2})}}); };
    if (narrow == DType::float16) {
      CHECK(user_error(call).starts_with("Optimizer::gradients: in float16 the loss has a scale"));
      continue;
    }
    for (int i = 0; i < 2; ++i) call();
    optimizer.update();
    CHECK(store.read("w").to_doubles() == std::vector<double>{0.75, 0});
    CHECK(store.read_shadow("w").to_doubles() == std::vector<double>{0.75, 0});
  }
}

TEST_CASE("a learning rate that the loop sets is that of the following steps") {
  ParameterStore set = make_store();
  ParameterStore given = make_store();
  Model by_loop(set, samples, {.learning_rate = 0.5}, false);
  Model by_schedule(
      given, samples,
      {.learning_rate = Schedule::sequence({Schedule(0.5), Schedule(0.1), Schedule(0.02)}, {1, 3})}, false);
  for (int step = 0; step < 4; ++step) {
    if (step == 1) by_loop.optimizer.set_learning_rate(0.1);
    if (step == 3) by_loop.optimizer.set_learning_rate(0.02);
    CHECK(by_loop.optimizer.learning_rate() == by_schedule.optimizer.learning_rate());
    const Tensor x = batch_of(samples, static_cast<std::uint64_t>(step));
    for (Model* model : {&by_loop, &by_schedule}) {
      model->optimizer.gradients({{"x", x}});
      model->optimizer.update();
    }
  }
  check_same(set, given);
}

TEST_CASE("a learning rate that is no rate, or that a plateau changes, is refused") {
  ParameterStore store = make_store();
  Model model(store, samples);
  for (const double rate : {-0.1, HUGE_VAL, std::numeric_limits<double>::quiet_NaN()})
    CHECK(contains(user_error([&] { model.optimizer.set_learning_rate(rate); }),
                   "a learning rate is a finite number, and not negative"));
  CHECK(model.optimizer.learning_rate() == 0.01);
  ParameterStore other = make_store();
  Model watched(other, samples, {.learning_rate = Schedule({.peak = 0.1, .decay = Plateau{}})});
  CHECK(contains(user_error([&] { watched.optimizer.set_learning_rate(0.1); }),
                 "Optimizer::set_learning_rate: the schedule has a Plateau"));
}

}  // namespace plexaura::testing::optimizer_calls_test
