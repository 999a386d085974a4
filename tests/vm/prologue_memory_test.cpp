#include "core/vm/prologue_memory.h"

#include <cmath>
#include <doctest/doctest.h>
#include <stdexcept>

#include "backends/registry.h"
#include "core/compile/compile.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::prologue_memory_test {

namespace {

std::shared_ptr<const Program> small_program() {
  Graph graph;
  const std::vector<ProgramOutput> outputs{{.node = graph.constant(Tensor::scalar(1.0F))}};
  return compile(graph, outputs, test_backend());
}

}  // namespace

TEST_CASE("a prologue is computed once for each version of the store") {
  PrologueMemory memory(small_program());
  int computed = 0;
  const auto refresh = [&](std::uint64_t version) { memory.refresh(version, [&] { ++computed; }); };
  refresh(1);
  refresh(1);
  CHECK(computed == 1);
  refresh(2);
  refresh(2);
  CHECK(computed == 2);
}

TEST_CASE("a prologue that failed is computed again") {
  PrologueMemory memory(small_program());
  int computed = 0;
  const auto compute = [&] { ++computed; };
  memory.refresh(1, compute);
  CHECK_THROWS(memory.refresh(2, [] { throw std::runtime_error("no"); }));
  memory.refresh(1, compute);  // the failed one may have written some values of version 2
  CHECK(computed == 2);
}

TEST_CASE("a prologue's memory serves one backend and store") {
  PrologueMemory memory(small_program());
  const Address address = memory.allocate(test_backend(), nullptr);
  CHECK(address != nullptr);
  CHECK(memory.allocate(test_backend(), nullptr) == address);
  const auto other = open_backend("portable");
  CHECK(user_error([&] {
          memory.allocate(*other, nullptr);
        }).starts_with("VM: the prologue memory is that of VMs with another backend or store"));
  CHECK(user_error([&] {
          memory.allocate(test_backend(), address);
        }).starts_with("VM: the prologue memory is that of VMs with another backend or store"));
}

TEST_CASE("VMs of one program share a prologue, and those of another program or store are refused") {
  Graph graph;
  const Node w = graph.parameter("w", {DType::float32, {3}});
  const Node y = tanh(w);
  const std::vector<ProgramOutput> outputs{{.node = y}};
  const auto program = compile(graph, outputs, test_backend());
  const auto store_with = [&](float value) {
    ParameterStore store({{.name = "w", .type = {DType::float32, {3}}, .initialiser = {}}});
    store.write("w", Tensor::of<float>({3}, {value, value, value}));
    return store;
  };
  ParameterStore store = store_with(1);
  ParameterStore other = store_with(2);
  const auto prologue = std::make_shared<PrologueMemory>(program);
  VM first(program, test_backend(), {.store = &store, .prologue = prologue});
  VM second(program, test_backend(), {.store = &store, .prologue = prologue});
  first.run({});
  second.run({});
  CHECK(first.output() == second.output());
  CHECK(user_error([&] {
          VM(compile(graph, outputs, test_backend()), test_backend(),
             {.store = &store, .prologue = prologue});
        }).starts_with("VM: the prologue memory is that of another program"));
  store.write("w", Tensor::of<float>({3}, {5, 5, 5}));
  second.run({});
  first.run({});
  CHECK(first.output().to_doubles()[2] == doctest::Approx(std::tanh(5.0)).epsilon(1e-6));
  CHECK(first.output() == second.output());
  if (program->prologue.empty()) return;
  VM wrong(program, test_backend(), {.store = &other, .prologue = prologue});
  CHECK(
      user_error([&] { wrong.run({}); }).starts_with("VM: the prologue memory is that of VMs with another"));
}

}  // namespace plexaura::testing::prologue_memory_test
