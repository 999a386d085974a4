// Every read of a buffer within a run gets its old value, wherever it is in the graph and however often it is
// computed. An update is computed in place if no reader can notice.

#include <doctest/doctest.h>

#include "core/ops/binary.h"
#include "core/ops/optimizer_steps.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"

namespace plexaura::testing::updates_test {

namespace {

const TensorType type{DType::float32, {2, 3, 4, 4}};

ParameterStore buffers(std::initializer_list<const char*> names) {
  std::vector<ParameterSpec> specs;
  for (const char* name : names) specs.push_back({name, type, ParameterRole::buffer, Initialiser::zeros()});
  ParameterStore store(std::move(specs));
  std::uint64_t seed = 1;
  for (const char* name : names) store.write(name, whole_numbers(type, seed++));
  return store;
}

std::vector<double> doubled(const Tensor& tensor) {
  std::vector<double> values = tensor.to_doubles();
  for (double& value : values) value *= 2;
  return values;
}

}  // namespace

TEST_CASE("a node that reads a buffer late, or again, sees its old value") {
  for (const bool optimise : {true, false})
    for (const bool keep_all : {true, false}) {
      CAPTURE(optimise);
      CAPTURE(keep_all);
      Graph graph;
      const Node b = graph.buffer("b", type);
      const Node x = graph.input("x", type);
      graph.update(b, b * 2);
      const Node first = b + x;
      const Node again = b + x;  // a node that recomputation would add
      const Node seen = reshape(b, {2, 48});
      ParameterStore store = buffers({"b"});
      const Tensor old = store.read("b");
      const std::vector<ProgramOutput> outputs{{first}, {again * 1}, {b}, {seen}};
      VM vm(compile(graph, outputs, test_backend(), {.optimise = optimise, .keep_all = keep_all}),
            test_backend(), {.store = &store});
      vm.run({{"x", Tensor(type)}});
      for (std::size_t i = 0; i < 4; ++i) {
        CAPTURE(i);
        CHECK(vm.output(i).to_doubles() == old.to_doubles());
      }
      if (keep_all) {
        CHECK(vm.value(b) == old);
        CHECK(vm.value(seen).to_doubles() == old.to_doubles());
      }
      CHECK(store.read("b").to_doubles() == doubled(old));
    }
}

TEST_CASE("what derives from a buffer is computed again when another VM's run has updated it") {
  Graph updating;
  const Node b = updating.buffer("b", type);
  updating.update(b, b * 2);
  Graph reading(Mode::inference);
  const Node x = reading.input("x", type);
  const std::vector<ProgramOutput> outputs{{x + square(reading.buffer("b", type))}};
  ParameterStore store = buffers({"b"});
  VM updates(compile(updating, {}, test_backend()), test_backend(), {.store = &store});
  const auto program = compile(reading, outputs, test_backend(), {.placement = &store.placement()});
  REQUIRE(!program->prologue.empty());
  VM reader(program, test_backend(), {.store = &store});
  for (int round = 0; round < 3; ++round) {
    std::vector<double> expected = store.read("b").to_doubles();
    for (double& value : expected) value *= value;
    reader.run({{"x", Tensor(type)}});
    CHECK(reader.output().to_doubles() == expected);
    const std::uint64_t version = store.version();
    reader.run({{"x", Tensor(type)}});
    CHECK(store.version() == version);
    updates.run({});
    CHECK(store.version() > version);
    updates.wait();
  }
}

TEST_CASE("buffers change places") {
  Graph graph;
  const Node a = graph.buffer("a", type);
  const Node b = graph.buffer("b", type);
  const Node c = graph.buffer("c", type);
  graph.update(a, b);
  graph.update(b, c);
  graph.update(c, a);
  ParameterStore store = buffers({"a", "b", "c"});
  const Tensor old_a = store.read("a");
  const Tensor old_b = store.read("b");
  const Tensor old_c = store.read("c");
  VM vm(compile(graph, {}, test_backend()), test_backend(), {.store = &store});
  vm.run({});
  vm.wait();
  CHECK(store.read("a") == old_b);
  CHECK(store.read("b") == old_c);
  CHECK(store.read("c") == old_a);
  vm.run({});
  vm.run({});
  vm.wait();
  CHECK(store.read("a") == old_a);
}

TEST_CASE("buffers that are made of each other change at once") {
  Graph graph;
  const Node a = graph.buffer("a", type);
  const Node b = graph.buffer("b", type);
  graph.update(a, a + b);
  graph.update(b, a - b);
  ParameterStore store = buffers({"a", "b"});
  const auto old_a = store.read("a").to_doubles();
  const auto old_b = store.read("b").to_doubles();
  VM vm(compile(graph, {}, test_backend()), test_backend(), {.store = &store});
  vm.run({});
  vm.wait();
  for (std::size_t i = 0; i < old_a.size(); ++i) {
    CHECK(store.read("a").to_doubles()[i] == old_a[i] + old_b[i]);
    CHECK(store.read("b").to_doubles()[i] == old_a[i] - old_b[i]);
  }
}

TEST_CASE("two buffers may take one value") {
  Graph graph;
  const Node a = graph.buffer("a", type);
  const Node b = graph.buffer("b", type);
  const Node next = a * 2;
  graph.update(a, next);
  graph.update(b, next);
  ParameterStore store = buffers({"a", "b"});
  const std::vector<double> expected = doubled(store.read("a"));
  VM vm(compile(graph, {}, test_backend()), test_backend(), {.store = &store});
  vm.run({});
  vm.wait();
  CHECK(store.read("a").to_doubles() == expected);
  CHECK(store.read("b").to_doubles() == expected);
}

TEST_CASE("an update program works in place, where nobody reads the old value later") {
  const std::int64_t count = 64;
  const auto build = [&](Graph& graph, bool read_later) {
    const auto slice = [&](ArenaKind kind) { return graph.arena_slice({kind, 0, 0, count}, DType::float32); };
    const Node value = slice(ArenaKind::value);
    const Node momentum = slice(ArenaKind::state);
    const Node rate = graph.step_scalar(StepScalar::learning_rate, DType::float32);
    const SgdResult next = sgd_step(value, slice(ArenaKind::gradient), momentum, rate, {.momentum = 0.5});
    graph.update(value, next.value);
    graph.update(momentum, next.momentum);
    return read_later ? value * 3 : Node();
  };
  for (const bool read_later : {false, true}) {
    CAPTURE(read_later);
    Placement placement;
    placement.append("w", {DType::float32, {count}}, ParameterRole::trainable, Layout::row_major(1));
    ParameterStore store({{"w", {DType::float32, {count}}, ParameterRole::trainable, Initialiser::ones()}});
    store.place(placement, test_backend());
    store.require_states(1);
    Graph graph;
    const Node late = build(graph, read_later);
    std::vector<ProgramOutput> outputs;
    if (read_later) outputs.push_back({late});
    const auto program = compile(graph, outputs, test_backend(), {.placement = &store.placement()});
    if (!read_later) {
      CHECK(program->arena_bytes == 0);
      CHECK(program->instructions.size() == 1);
      CHECK(program->instructions[0].outputs[0]->place == program->instructions[0].inputs[0]->place);
    }
    VM vm(program, test_backend(), {.store = &store});
    StepBlock block;
    block.learning_rate = 0.25;
    vm.run({}, block);
    vm.wait();
    for (const double value : store.read("w").to_doubles()) CHECK(value == 1);  // the gradient is zero
    if (read_later)
      for (const double value : vm.output().to_doubles()) CHECK(value == 3);
  }
}

}  // namespace plexaura::testing::updates_test
