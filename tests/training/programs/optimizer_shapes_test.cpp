// Tests an Optimizer that is made from a function, for batches of several shapes.
#include <doctest/doctest.h>
#include <optional>
#include <vector>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "training/programs/optimizer.h"

namespace plexaura::testing::optimizer_shapes_test {

namespace {

constexpr double rate = 0.05;
constexpr double momentum = 0.9;
const TensorType scalar{DType::float64, {}};

ParameterStore make_store() {
  return ParameterStore({{"w", scalar, ParameterRole::trainable, Initialiser::zeros()},
                         {"v", scalar, ParameterRole::trainable, Initialiser::ones()}});
}

LossOutputs line(const ModelInputs& inputs) {
  const Node x = inputs["x"];
  const Node error = x * inputs.graph().parameter("w", scalar) - (x + 1);
  return {.loss = mean(square(error)) + 0 * inputs.graph().parameter("v", scalar),
          .metrics = {{.name = "count", .sum = sum(x * 0 + 1)}}};
}

Tensor batch(std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(0.5 + static_cast<double>(i * count % 7) / 4);
  return Tensor::of<double>({count}, values);
}

double slope(std::int64_t count, double w) {
  double sum = 0;
  for (const double x : batch(count).to_doubles()) sum += 2 * x * (x * w - (x + 1));
  return sum / static_cast<double>(count);
}

// The line is trained by SGD with momentum as PyTorch defines it.
struct ByHand {
  double w = 0;
  double m = 0;

  void step(double gradient) {
    m = momentum * m + gradient;
    w -= rate * m;
  }
};

OptimizerOptions options(std::int64_t kept_shapes = 16) {
  return {.parameters = {"w"},
          .optimizer = {.momentum = momentum},
          .learning_rate = rate,
          .kept_shapes = kept_shapes};
}

double weight(const ParameterStore& store) { return store.read("w").to_doubles()[0]; }

}  // namespace

TEST_CASE("batches of several shapes share parameters and state, however many programs are kept") {
  for (const std::int64_t kept : {16, 2, 1}) {
    ParameterStore store = make_store();
    Optimizer train(line, {{"x", batch(4)}}, store, test_backend(), options(kept));
    ByHand hand;
    for (const std::int64_t count : {4, 2, 9, 4, 2, 2, 30, 9, 4}) {
      train.step({{"x", batch(count)}});
      hand.step(slope(count, hand.w));
      CHECK(train.metric("count") == static_cast<double>(count));
      CHECK(weight(store) == doctest::Approx(hand.w).epsilon(1e-12));
    }
    CHECK(train.steps() == 9);
  }
}

TEST_CASE("gradients of batches of several shapes make one step") {
  for (const std::int64_t kept : {16, 1}) {
    ParameterStore store = make_store();
    Optimizer train(line, {{"x", batch(4)}}, store, test_backend(), options(kept));
    ByHand hand;
    for (int step = 0; step < 3; ++step) {
      double gradient = 0;
      for (const std::int64_t count : {4, 2, 9}) {
        train.gradients({{"x", batch(count)}});
        gradient += slope(count, hand.w) / 3;
      }
      CHECK(user_error([&] {
              train.step({{"x", batch(2)}});
            }).find("the gradients of 3 batches wait for update()") != std::string::npos);
      train.update();
      hand.step(gradient);
      CHECK(weight(store) == doctest::Approx(hand.w).epsilon(1e-12));
    }
  }
}

TEST_CASE("an Optimizer that is made from a function resumes before its first step") {
  const TemporaryFolder folder;
  ParameterStore whole = make_store();
  Optimizer first(line, {{"x", batch(4)}}, whole, test_backend(), options());
  for (const std::int64_t count : {4, 2, 3}) first.step({{"x", batch(count)}});
  first.save(folder / "run");
  for (const std::int64_t count : {5, 2}) first.step({{"x", batch(count)}});
  ParameterStore store = make_store();
  Optimizer second(line, {{"x", batch(2)}}, store, test_backend(), options());
  REQUIRE(second.resume(folder / "run"));
  for (const std::int64_t count : {5, 2}) second.step({{"x", batch(count)}});
  CHECK(weight(store) == weight(whole));
}

TEST_CASE("all shapes are compiled again after another Optimizer has placed the store") {
  const auto train = [](bool has_other) {
    ParameterStore store = make_store();
    Optimizer first(line, {{"x", batch(4)}}, store, test_backend(), options());
    for (const std::int64_t count : {4, 2}) first.step({{"x", batch(count)}});
    std::optional<Optimizer> other;
    if (has_other) {
      OptimizerOptions of_other = options();
      of_other.parameters = {"v"};
      other.emplace(line, std::initializer_list<Feed>{{"x", batch(3)}}, store, test_backend(), of_other);
    }
    for (const std::int64_t count : {4, 2, 3}) first.step({{"x", batch(count)}});
    return weight(store);
  };
  CHECK(train(true) == train(false));
}

TEST_CASE("labels are checked for each shape, and a batch that fails leaves everything as it was") {
  const TensorType weights{DType::float64, {2, 3}};
  ParameterStore store({{"w", weights, ParameterRole::trainable, Initialiser::ones()}});
  const auto classes = [&](const ModelInputs& inputs) {
    return LossOutputs{.loss = softmax_cross_entropy(
                           matmul(inputs["x"], inputs.graph().parameter("w", weights)), inputs["y"])};
  };
  const auto x = [](std::int64_t count) {
    return Tensor::of<double>({count, 2}, std::vector<double>(static_cast<std::size_t>(2 * count), 0.5));
  };
  const auto y = [](std::vector<std::int64_t> labels) {
    const auto count = std::ssize(labels);
    return Tensor::of<std::int64_t>({count}, std::move(labels));
  };
  Optimizer train(classes, {{"x", x(2)}, {"y", y({0, 1})}}, store, test_backend());
  train.step({{"x", x(3)}, {"y", y({0, 1, 2})}});
  const Tensor before = store.read("w");
  CHECK(user_error([&] {
          train.step({{"x", x(1)}, {"y", y({3})}});
        }).find("is the label 3") != std::string::npos);
  CHECK(user_error([&] { train.step({{"x", x(1)}}); }).find("the model asks for 'y'") != std::string::npos);
  CHECK(store.read("w") == before);
  CHECK(train.steps() == 1);
  train.step({{"y", y({0, 1})}, {"x", x(2)}});  // in any order
  CHECK(train.steps() == 2);
}

TEST_CASE("functions without a loss of their own graph, and no kept shape, are refused") {
  ParameterStore store = make_store();
  const auto refusal = [&](const ModelBuilder& build, std::int64_t kept = 16) {
    return user_error([&] { Optimizer(build, {{"x", batch(2)}}, store, test_backend(), options(kept)); });
  };
  CHECK(refusal({}) == "the Optimizer has no model; give it the function that builds the loss");
  CHECK(refusal(line, 0).starts_with("OptimizerOptions::kept_shapes is 0; an Optimizer keeps"));
  Graph other;
  const Node loss = square(other.parameter("w", scalar));
  CHECK(refusal([&](const ModelInputs&) {
          return LossOutputs{.loss = loss};
        }).starts_with("the loss that the function of an Optimizer returned belongs to another graph"));
}

TEST_CASE("several ranks feed batches of one shape") {
  ThreadRanks(2).run([](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = make_store();
    store.set_trainable("v", false);
    SummingStrategy strategy(ranks);
    OptimizerOptions of_ranks = options();
    of_ranks.ranks = &ranks;
    of_ranks.strategy = &strategy;
    Optimizer train(line, {{"x", batch(4)}}, store, *backend, of_ranks);
    train.step({{"x", batch(4)}});
    ByHand hand;
    hand.step(slope(4, 0));
    CHECK(weight(store) == doctest::Approx(hand.w).epsilon(1e-12));
    CHECK(user_error([&] {
            train.step({{"x", batch(2)}});
          })
              .find("was made for the batch (x float64[4]) and was fed (x "
                    "float64[2])") != std::string::npos);
  });
}

}  // namespace plexaura::testing::optimizer_shapes_test
