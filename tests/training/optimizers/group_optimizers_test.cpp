#include "training/optimizers/group_optimizers.h"

#include <cmath>
#include <doctest/doctest.h>
#include <optional>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "training/programs/optimizer.h"

namespace plexaura::testing::group_optimizers_test {

namespace {

constexpr std::int64_t samples = 4;
const OptimizerSpec sgd{.momentum = 0.9};

Tensor values(Shape shape, auto value_of) {
  Tensor made({DType::float64, std::move(shape)});
  const auto all = made.as<double>();
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = value_of(static_cast<double>(i));
  return made;
}

// Returns rows [first, first + count) of the inputs or of the targets.
Tensor rows(std::int64_t columns, std::int64_t first, std::int64_t count) {
  return values({count, columns}, [&](double i) {
    const double place = static_cast<double>(first * columns) + i;
    return columns == 3 ? std::cos(place) : std::cos(2 * place + 1);
  });
}

std::vector<Feed> batch(std::int64_t first, std::int64_t count) {
  return {{"x", rows(3, first, count)}, {"y", rows(2, first, count)}};
}

ParameterStore make_store() {
  const auto spec = [](const char* name, Shape shape) {
    return ParameterSpec{
        name, {DType::float64, std::move(shape)}, ParameterRole::trainable, Initialiser::zeros()};
  };
  ParameterStore store(
      {spec("fc1.weight", {3, 5}), spec("fc1.bias", {5}), spec("fc2.weight", {5, 2}), spec("fc2.bias", {2})});
  double first = 1;
  for (const ParameterSpec& of : store.specs())
    store.write(of.name, values(of.type.shape, [&, k = first++](double i) { return std::sin(k + i); }));
  return store;
}

LossOutputs loss(Graph& graph, const ParameterStore& store, std::int64_t count) {
  const auto parameter = [&](const char* name) { return graph.parameter(name, store.spec(name).type); };
  const Node x = graph.input("x", {DType::float64, {count, 3}});
  const Node y = graph.input("y", {DType::float64, {count, 2}});
  const Node hidden = tanh(matmul(x, parameter("fc1.weight")) + parameter("fc1.bias"));
  return {.loss = mean(square(matmul(hidden, parameter("fc2.weight")) + parameter("fc2.bias") - y))};
}

OptimizerOptions two_rules() {
  return {.optimizer = {.kind = OptimizerSpec::adamw,
                        .weight_decay = 0.1,
                        .max_gradient_norm = 0.5,
                        .groups = {{"*.bias", {.rate = 2, .decay = 0.02, .optimizer = sgd}},
                                   {"fc2.*", {.rate = 0.5}}}},
          .learning_rate = Schedule({.peak = 0.05, .decay = StepDecay{10, 0.5}})};
}

// Returns a number for each parameter: the sum of its elements times 1, 2, 3 and so on.
std::vector<double> sums_of(const ParameterStore& store) {
  std::vector<double> sums;
  for (const ParameterSpec& spec : store.specs()) {
    double sum = 0;
    double factor = 0;
    for (const double value : store.read(spec.name).to_doubles()) sum += value * ++factor;
    sums.push_back(sum);
  }
  return sums;
}

// The values of the same model after 20 steps of PyTorch: torch.optim.AdamW with lr 0.05 and weight_decay 0.1 for
// fc1.weight, with half of that lr for fc2.weight, and torch.optim.SGD with momentum 0.9, weight_decay 0.02 and twice that lr
// for the biases. The lr is halved after ten steps. clip_grad_norm_ limits all gradients to 0.5, which it does in 15 steps.
void check_like_torch(const ParameterStore& store) {
  const std::vector<double> expected{1.141153423522102, -7.375078707833518, -11.309821949389626,
                                     -1.014297833688981};
  const std::vector<double> sums = sums_of(store);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(sums.at(i) == doctest::Approx(expected[i]).epsilon(1e-10));
}

Placement placement_of(const ParameterStore& store) {
  Placement placement;
  placement.types = ArenaTypes::all(DType::float64);
  for (const ParameterSpec& spec : store.specs())
    placement.append(spec.name, spec.type, spec.role, Layout::row_major(spec.type.shape.rank()));
  return placement;
}

std::vector<std::string> names(const Placement& placement) {
  std::vector<std::string> found;
  for (const Placement::Entry& entry : placement.entries) found.push_back(entry.name);
  return found;
}

}  // namespace

TEST_CASE("twenty steps with two kinds of optimizers are those of PyTorch") {
  ParameterStore store = make_store();
  Graph graph;
  Optimizer optimizer(loss(graph, store, samples), store, test_backend(), two_rules());
  for (int step = 0; step < 20; ++step) optimizer.step(batch(0, samples));
  check_like_torch(store);
}

TEST_CASE("gradients of several batches update groups with optimizers of their own as one batch does") {
  ParameterStore store = make_store();
  Graph graph;
  Optimizer optimizer(loss(graph, store, 2), store, test_backend(), two_rules());
  for (int step = 0; step < 20; ++step) {
    for (const std::int64_t first : {0, 2}) optimizer.gradients(batch(first, 2));
    optimizer.update();
  }
  check_like_torch(store);
}

TEST_CASE("two ranks update groups with optimizers of their own as one rank does") {
  ThreadRanks(2).run([](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = make_store();
    SummingStrategy strategy(ranks);
    OptimizerOptions options = two_rules();
    options.ranks = &ranks;
    options.strategy = &strategy;
    Graph graph;
    Optimizer optimizer(loss(graph, store, 2), store, *backend, options);
    for (int step = 0; step < 20; ++step) optimizer.step(batch(2 * ranks.rank(), 2));
    check_like_torch(store);
  });
}

TEST_CASE("another optimizer of the store leaves the groups of the first one and their state as they were") {
  OptimizerOptions options = two_rules();
  options.parameters = {"fc1.*"};
  options.optimizer.groups = {{"*.bias", {.optimizer = sgd}}};
  const auto train = [&](bool has_other) {
    ParameterStore store = make_store();
    Graph graph;
    Optimizer first(loss(graph, store, samples), store, test_backend(), options);
    for (int step = 0; step < 3; ++step) first.step(batch(0, samples));
    OptimizerOptions of_other = options;
    of_other.parameters = {"fc2.*"};
    Graph other_graph;
    std::optional<Optimizer> other;
    if (has_other) other.emplace(loss(other_graph, store, samples), store, test_backend(), of_other);
    if (has_other)
      CHECK(store.trained_parts().names() ==
            "adamw (*.bias: sgd with momentum) of fc1.*; adamw (*.bias: sgd with momentum) of fc2.*");
    for (int step = 0; step < 3; ++step) first.step(batch(0, samples));
    return sums_of(store);
  };
  CHECK(train(true) == train(false));
}

TEST_CASE("a checkpoint belongs to the kinds of optimizers and their patterns, and not to their rates") {
  const TemporaryFolder folder;
  const auto make = [](ParameterStore& store, Graph& graph, const OptimizerOptions& options) {
    return Optimizer(loss(graph, store, samples), store, test_backend(), options);
  };
  ParameterStore whole = make_store();
  Graph graph;
  Optimizer first = make(whole, graph, two_rules());
  for (int step = 0; step < 4; ++step) first.step(batch(0, samples));
  first.save(folder / "run");
  for (int step = 0; step < 4; ++step) first.step(batch(0, samples));

  ParameterStore store = make_store();
  Graph again;
  Optimizer second = make(store, again, two_rules());
  REQUIRE(second.resume(folder / "run"));
  for (int step = 0; step < 4; ++step) second.step(batch(0, samples));
  for (const ParameterSpec& spec : store.specs()) CHECK(store.read(spec.name) == whole.read(spec.name));

  const auto resume = [&](std::vector<ParameterGroup> groups) {
    OptimizerOptions options = two_rules();
    options.optimizer.groups = std::move(groups);
    ParameterStore other = make_store();
    Graph of_other;
    return user_error([&] { make(other, of_other, options).resume(folder / "run"); });
  };
  CHECK(resume({{"*.bias", {.rate = 3, .optimizer = sgd}}, {"fc1.*", {.decay = 0}}}).empty());
  const std::string text = resume({{"*.bias", {.optimizer = OptimizerSpec{.kind = OptimizerSpec::adam}}}});
  CHECK(text.find("was made with training.optimizer.name adamw (*.bias: sgd with momentum) and now it is "
                  "adamw (*.bias: adam)") != std::string::npos);
  CHECK(!resume({{"fc1.bias", {.optimizer = sgd}}}).empty());
  CHECK(!resume({{"*.bias", {.optimizer = OptimizerSpec{}}}}).empty());
  CHECK(!resume({{"fc2.*"}, {"*.bias", {.optimizer = sgd}}}).empty());
  CHECK(!resume({}).empty());
}

TEST_CASE("an optimizer is named by its groups up to the last one with a rule of its own") {
  const OptimizerSpec adamw{.kind = OptimizerSpec::adamw};
  OptimizerSpec grouped = adamw;
  grouped.groups = {{"a", {.rate = 2}}, {"b", {.decay = 0}}};
  CHECK(optimizer_name(grouped) == "adamw");
  CHECK(state_count(grouped) == 2);
  grouped.groups.insert(grouped.groups.begin() + 1, {"c", {.optimizer = OptimizerSpec{}}});
  CHECK(optimizer_name(grouped) == "adamw (a: adamw, c: sgd)");
  OptimizerSpec plain{.groups = {{"a", {.optimizer = adamw}}}};
  CHECK(optimizer_name(plain) == "sgd (a: adamw)");
  CHECK(state_count(plain) == 2);
}

TEST_CASE("parameters of one rule become neighbours, and a bucket has one slice of each rule") {
  const OptimizerSpec optimizer{.groups = {{"*.bias", {.optimizer = sgd}}, {"fc2.*", {.rate = 2}}}};
  const Placement placement = placement_of(make_store());
  const auto before = slices_by_rule(placement, {0, 48, DType::float64}, optimizer);
  REQUIRE(before.size() == 4);
  CHECK(before[0].slice == Bucket{0, 16, DType::float64});
  CHECK(before[0].rule == &optimizer);
  CHECK(before[1].slice == Bucket{16, 8, DType::float64});
  CHECK(before[1].rule == optimizer.groups[0].options.optimizer.spec());
  CHECK(before[3].slice == Bucket{40, 8, DType::float64});

  const Placement ordered = ordered_by_rule(placement, optimizer);
  CHECK(names(ordered) == std::vector<std::string>{"fc1.weight", "fc2.weight", "fc1.bias", "fc2.bias"});
  const auto after = slices_by_rule(ordered, {0, 48, DType::float64}, optimizer);
  REQUIRE(after.size() == 2);
  CHECK(after[0].slice == Bucket{0, 32, DType::float64});
  CHECK(after[1].slice == Bucket{32, 16, DType::float64});
  CHECK(ordered_by_rule(placement, sgd) == placement);
}

}  // namespace plexaura::testing::group_optimizers_test
