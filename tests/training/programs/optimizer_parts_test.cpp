#include "training/programs/optimizer_parts.h"

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <memory>

#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/gate.h"
#include "tests/support/temporary_folder.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/files/safetensors.h"
#include "training/programs/optimizer.h"

namespace plexaura::testing::optimizer_parts_test {

namespace {

TensorType type_of(Shape shape) { return {DType::float64, std::move(shape)}; }

ParameterSpec spec(const char* name, Shape shape, ParameterRole role = ParameterRole::trainable) {
  return {name, type_of(std::move(shape)), role,
          role == ParameterRole::buffer ? Initialiser::zeros() : Initialiser::uniform(1)};
}

// The parameters of a critic, d, and of a generator, g, and buffers: each net counts its steps, and both count them in
// `calls`.
ParameterStore nets() {
  return ParameterStore({spec("d.w", {2, 4}), spec("g.w", {3, 2}), spec("d.v", {4, 1}), spec("g.b", {2}),
                         spec("d.seen", {}, ParameterRole::buffer), spec("g.seen", {}, ParameterRole::buffer),
                         spec("calls", {}, ParameterRole::buffer)},
                        5);
}

const std::vector<const char*> all_names{"d.w", "d.v", "g.w", "g.b", "d.seen", "g.seen", "calls"};

Node critic(Graph& graph, const Node& x) {
  const Node hidden = tanh(matmul(x, graph.parameter("d.w", type_of({2, 4}))));
  return matmul(hidden, graph.parameter("d.v", type_of({4, 1})));
}

Node generator(Graph& graph) {
  const Node z = graph.input("z", type_of({5, 3}));
  return matmul(dropout(z, {.p = 0.25}), graph.parameter("g.w", type_of({3, 2}))) +
         graph.parameter("g.b", type_of({2}));
}

void count_in(Graph& graph, const char* name) {
  const Node buffer = graph.buffer(name, type_of({}));
  graph.update(buffer, buffer + 1);
}

// The loss of a Wasserstein critic with a penalty for gradients whose norm is not 1.
LossOutputs critic_loss(Graph& graph) {
  const Node real = graph.input("real", type_of({5, 2}));
  const Node fake = generator(graph);
  const Node between = real * 0.5 + fake * 0.5;
  const Node slope = gradients(sum(critic(graph, between)), {between})[0];
  const Node excess = sqrt(sum(square(slope), {.axes = {1}}) + 1e-12) - 1;
  count_in(graph, "d.seen");
  count_in(graph, "calls");
  return {.loss = mean(critic(graph, fake)) - mean(critic(graph, real)) + mean(square(excess)) * 10};
}

LossOutputs generator_loss(Graph& graph) {
  count_in(graph, "g.seen");
  count_in(graph, "calls");
  return {.loss = mean(critic(graph, generator(graph))) * -1};
}

const OptimizerSpec adam{.kind = OptimizerSpec::adam, .beta1 = 0.5, .max_gradient_norm = 1};
const OptimizerSpec momentum{.momentum = 0.9, .weight_decay = 0.01};

OptimizerOptions of_critic(std::vector<std::string> parameters) {
  return {.parameters = std::move(parameters), .optimizer = adam, .learning_rate = 0.01};
}

OptimizerOptions of_generator(std::vector<std::string> parameters) {
  return {.parameters = std::move(parameters), .optimizer = momentum, .learning_rate = 0.05};
}

std::unique_ptr<Optimizer> make_critic(ParameterStore& store, std::vector<std::string> parameters = {"d.*"}) {
  Graph graph;
  return std::make_unique<Optimizer>(critic_loss(graph), store, test_backend(),
                                     of_critic(std::move(parameters)));
}

std::unique_ptr<Optimizer> make_generator(ParameterStore& store,
                                          std::vector<std::string> parameters = {"g.*"}) {
  Graph graph;
  return std::make_unique<Optimizer>(generator_loss(graph), store, test_backend(),
                                     of_generator(std::move(parameters)));
}

Tensor numbers(Shape shape, double first) {
  Tensor tensor(type_of(std::move(shape)));
  double next = first;
  for (double& element : tensor.as<double>()) {
    next += 0.37;
    element = next - std::floor(next);
  }
  return tensor;
}

double step_critic(Optimizer& optimizer, int step) {
  return optimizer.step({{"real", numbers({5, 2}, step + 2)}, {"z", numbers({5, 3}, step * 0.1)}});
}

double step_generator(Optimizer& optimizer, int step) {
  return optimizer.step({{"z", numbers({5, 3}, step * 0.1 + 0.5)}});
}

// Two steps of the critic, and one of the generator.
void train(Optimizer& critic, Optimizer& generator, int first, int last) {
  for (int step = first; step < last; ++step) {
    step_critic(critic, 2 * step);
    step_critic(critic, 2 * step + 1);
    step_generator(generator, step);
  }
}

void copy(const ParameterStore& from, ParameterStore& to, std::initializer_list<const char*> names) {
  for (const char* name : names) to.write(name, from.read(name));
}

void check_equal(const ParameterStore& one, const ParameterStore& other) {
  for (const char* name : all_names) {
    CAPTURE(name);
    CHECK(one.read(name) == other.read(name));
  }
}

}  // namespace

TEST_CASE("two optimizers on one store have the bits of two stores with copies between them") {
  for (const bool critic_first : {true, false}) {
    CAPTURE(critic_first);
    ParameterStore store = nets();
    std::unique_ptr<Optimizer> generator = critic_first ? nullptr : make_generator(store);
    const auto critic = make_critic(store);
    if (!generator) generator = make_generator(store);
    train(*critic, *generator, 0, 4);

    ParameterStore of_d = nets();
    ParameterStore of_g = nets();
    for (const char* name : {"g.w", "g.b"}) of_d.set_trainable(name, false);
    for (const char* name : {"d.w", "d.v"}) of_g.set_trainable(name, false);
    const auto lone_critic = make_critic(of_d, {});
    const auto lone_generator = make_generator(of_g, {});
    for (int step = 0; step < 4; ++step) {
      step_critic(*lone_critic, 2 * step);
      step_critic(*lone_critic, 2 * step + 1);
      copy(of_d, of_g, {"d.w", "d.v", "calls"});
      step_generator(*lone_generator, step);
      copy(of_g, of_d, {"g.w", "g.b", "g.seen", "calls"});
    }
    check_equal(store, of_d);
    CHECK(store.read("d.seen").to_doubles()[0] == 8);
    CHECK(store.read("g.seen").to_doubles()[0] == 4);
    CHECK(store.read("calls").to_doubles()[0] == 12);
    CHECK(critic->steps() == 8);
    CHECK(generator->steps() == 4);
    CHECK(store.updates() == 12);
  }
}

TEST_CASE("an optimizer goes on with its state when another one joins and when that one ends") {
  ParameterStore alone = nets();
  const auto whole = make_critic(alone);
  for (int step = 0; step < 6; ++step) step_critic(*whole, step);

  ParameterStore store = nets();
  const auto critic = make_critic(store);
  for (int step = 0; step < 2; ++step) step_critic(*critic, step);
  const Tensor weights = store.read("g.w");
  auto generator = make_generator(store);
  for (int step = 2; step < 4; ++step) step_critic(*critic, step);
  CHECK(store.read("g.w") == weights);
  step_generator(*generator, 0);
  CHECK(store.read("g.w") != weights);
  for (const char* name : {"g.w", "g.b"}) store.write(name, alone.read(name));
  generator.reset();
  for (int step = 4; step < 6; ++step) step_critic(*critic, step);
  for (const char* name : {"d.w", "d.v", "d.seen"}) CHECK(store.read(name) == alone.read(name));
  CHECK(store.read("calls").to_doubles()[0] == 7);
  CHECK(critic->steps() == 6);
}

TEST_CASE("a checkpoint of two optimizers holds the state and the steps of both") {
  const TemporaryFolder folder;
  ParameterStore whole = nets();
  const auto critic = make_critic(whole);
  const auto generator = make_generator(whole);
  train(*critic, *generator, 0, 4);

  ParameterStore first = nets();
  const auto first_critic = make_critic(first);
  const auto first_generator = make_generator(first);
  train(*first_critic, *first_generator, 0, 2);
  first_critic->save(folder / "run");

  ParameterStore second = nets();
  const auto second_generator = make_generator(second);
  const auto second_critic = make_critic(second);
  REQUIRE(second_generator->resume(folder / "run"));
  CHECK(second_critic->steps() == 4);
  CHECK(second_generator->steps() == 2);
  CHECK(second.updates() == 6);
  train(*second_critic, *second_generator, 2, 4);
  check_equal(second, whole);

  ParameterStore other = nets();
  const auto only = make_critic(other);
  CHECK(user_error([&] {
          only->resume(folder / "run");
        }).find("training.optimizer.name adam of d.*; sgd of g.* and now it is adam of d.*;") !=
        std::string::npos);
}

TEST_CASE("a checkpoint holds the states of the living optimizers, and is not concerned by those before") {
  const TemporaryFolder folder;
  ParameterStore store = nets();
  const auto critic = make_critic(store);
  auto generator = make_generator(store);
  train(*critic, *generator, 0, 1);
  const auto saved = [&](Optimizer& optimizer, const char* name) {
    optimizer.save(folder / name);
    std::set<std::string> states;
    for (const auto& [tensor, value] :
         read_safetensors(*newest_checkpoint(folder / name) / "state.safetensors").tensors)
      if (tensor.starts_with("state")) states.insert(tensor);
    return states;
  };
  const std::set<std::string> of_critic_alone{"state0.d.v", "state0.d.w", "state1.d.v", "state1.d.w"};
  std::set<std::string> of_both = of_critic_alone;
  of_both.insert({"state0.g.b", "state0.g.w"});
  CHECK(saved(*critic, "both") == of_both);
  generator.reset();
  CHECK(saved(*critic, "one") == of_critic_alone);

  ParameterStore other = nets();
  const auto other_critic = make_critic(other);
  REQUIRE(other_critic->resume(folder / "one"));
  other_critic->save(folder / "alone");
  make_generator(store).reset();  // its parameters stay in the placement until the store is placed anew
  REQUIRE(critic->resume(folder / "alone"));
  check_equal(store, other);
}

TEST_CASE("an arena of state ends with the parameters that have this state") {
  const auto bytes = [](const ParameterStore& store, const char* last) {
    const Placement::Entry& entry = *store.placement().find(last);
    return static_cast<std::int64_t>(sizeof(double)) * (entry.offset + entry.count);
  };
  for (const bool critic_first : {true, false}) {
    CAPTURE(critic_first);
    ParameterStore store = nets();
    std::unique_ptr<Optimizer> generator = critic_first ? nullptr : make_generator(store);
    const auto critic = make_critic(store);
    if (!generator) generator = make_generator(store);
    CHECK(store.states() == 2);
    // The arenas of both states begin with the parameters of the critic, which alone have the second state.
    for (const char* of_critic : {"d.w", "d.v"})
      for (const char* of_generator : {"g.w", "g.b"})
        CHECK(bytes(store, of_critic) < bytes(store, of_generator));
    CHECK(user_error([&] { store.read_state(1, "g.w"); }) ==
          "'g.w' has no optimizer state number 1, counted from 0: the Optimizer that trains it keeps fewer");
    CHECK(store.read_state(1, "d.w") == Tensor(type_of({2, 4})));
    CHECK(store.read_state(0, "g.w") == Tensor(type_of({3, 2})));
  }
  ParameterStore store = nets();
  const auto former = make_critic(store);
  const auto latter = make_generator(store, {"d.*", "g.*"});
  CHECK(store.states() == 1);
}

TEST_CASE("two optimizers of one store refuse calls from two threads at once") {
  const TensorType two{DType::float64, {2}};
  const TemporaryFolder folder;
  ParameterStore store({{"a", two, ParameterRole::trainable, Initialiser::ones()},
                        {"b", two, ParameterRole::trainable, Initialiser::ones()}});
  Graph of_a;
  Optimizer first({.loss = mean(square(gated(of_a.parameter("a", two))))}, store, oracle(),
                  {.parameters = {"a"}});
  Graph of_b;
  const LossOutputs loss{.loss = mean(square(of_b.parameter("b", two)))};
  Optimizer second(loss, store, oracle(), {.parameters = {"b"}});
  const auto refused = [](const char* function) {
    return std::string(function) +
           ": another thread is in a call of an Optimizer of this store; the Optimizers of a store serve one "
           "thread at a time";
  };
  while_running([&] { first.step({}); },
                [&] {
                  CHECK(user_error([&] { second.step({}); }) == refused("Optimizer::step"));
                  CHECK(user_error([&] { second.save(folder / "run"); }) == refused("Optimizer::save"));
                  CHECK(user_error([&] { second.resume(folder / "run"); }) == refused("Optimizer::resume"));
                  CHECK(user_error([&] { Optimizer(loss, store, oracle(), {.parameters = {"b"}}); }) ==
                        refused("Optimizer"));
                });
  CHECK(store.read("b").to_doubles() == std::vector<double>{1, 1});
  second.step({});
  CHECK(store.updates() == 2);
}

TEST_CASE("parameters that no optimizer trains stay as they are, and are in the checkpoint") {
  const TemporaryFolder folder;
  ParameterStore store = nets();
  const auto critic = make_critic(store, {"d.v"});
  const Tensor weights = store.read("d.w");
  step_critic(*critic, 0);
  CHECK(store.read("d.w") == weights);
  critic->save(folder / "run");
  ParameterStore again = nets();
  const auto other = make_critic(again, {"d.v"});
  REQUIRE(other->resume(folder / "run"));
  CHECK(other->steps() == 1);
  check_equal(again, store);
}

TEST_CASE("an optimizer ends another whose parameters it takes, and none of which it takes some") {
  ParameterStore store = nets();
  const auto former = make_critic(store);
  const auto latter = make_critic(store, {"d.w", "d.v"});
  step_critic(*latter, 0);
  CHECK(user_error([&] { step_critic(*former, 1); }).starts_with("the store was placed anew"));
  CHECK(user_error([&] { make_critic(store, {"d.w"}); }) ==
        "another Optimizer of this store, adam of d.w, d.v, trains 'd.w' too, and 'd.v' besides; give both "
        "OptimizerOptions::parameters that have none in common, or destroy the other one first");
  step_critic(*latter, 1);
  store.set_trainable("d.v", false);
  const auto last = make_critic(store, {"d.w"});  // the rest of the other one's parameters is frozen
  step_critic(*last, 2);
}

TEST_CASE("patterns without parameters, groups of others, and other seeds are refused") {
  ParameterStore store = nets();
  CHECK(user_error([&] {
          make_critic(store, {"d.w", "dv"});
        }) ==
        "no trainable parameter is named like 'dv' of OptimizerOptions::parameters; did you mean 'd.v'?");
  const auto critic = make_critic(store);
  Graph graph;
  const LossOutputs loss = generator_loss(graph);
  OptimizerOptions options = of_generator({"g.*"});
  options.optimizer.groups = {{"d.w"}};
  CHECK(user_error([&] {
          Optimizer(loss, store, test_backend(), options);
        }).ends_with("its pattern fits no parameter that the optimizer trains; remove it, or correct it"));
  options.optimizer.groups = {};
  options.seed = 1;
  CHECK(user_error([&] { Optimizer(loss, store, test_backend(), options); }) ==
        "another Optimizer of this store, adam of d.*, has the seed 0 and OptimizerOptions::seed is 1; give "
        "all Optimizers of a store one seed, which its checkpoint holds");
  step_critic(*critic, 0);
}

TEST_CASE("two optimizers in float16 are refused, which would adapt one loss scale") {
  const TensorType two{DType::float32, {2}};
  ParameterStore store({{"a", two, ParameterRole::trainable, Initialiser::ones()},
                        {"b", two, ParameterRole::trainable, Initialiser::ones()}});
  store.set_types(ArenaTypes::mixed(DType::float16));
  Graph graph;
  const LossOutputs loss{.loss = mean(square(graph.parameter("a", two) * graph.parameter("b", two)))};
  const Optimizer first(loss, store, test_backend(), {.parameters = {"a"}});
  CHECK(user_error([&] {
          Optimizer(loss, store, test_backend(), {.parameters = {"b"}});
        }).starts_with("the store has an Optimizer, sgd of a, and a loss scale, which only one"));
}

TEST_CASE("the parameters of one optimizer are slices of the arena, wherever the others are") {
  Placement placement;
  placement.types = ArenaTypes::all(DType::float64);
  for (const char* name : {"a", "b", "c", "d"})
    placement.append(name, type_of({8}), ParameterRole::trainable, Layout::row_major(1));
  const std::vector<Bucket> buckets = buckets_of(placement, {"a", "b", "d"});
  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0] == Bucket{0, 16, DType::float64});
  CHECK(buckets[1] == Bucket{24, 8, DType::float64});
  CHECK(buckets[2].offset == 32);
}

}  // namespace plexaura::testing::optimizer_parts_test
