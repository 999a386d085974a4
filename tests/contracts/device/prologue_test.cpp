// The prologue of a program, which computes the values that depend only on parameters, runs once. Its memory
// is allocated when the program first runs, because programs for validation are made early and may never run.

#include <algorithm>
#include <doctest/doctest.h>

#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "tests/contracts/device/counting_backend.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"

namespace plexaura::testing::prologue_test {

TEST_CASE("the first run takes the memory of the prologue, and no later one") {
  const TensorType weights{DType::float32, {6, 3}};
  const TensorType rows{DType::float32, {4, 6}};
  ParameterStore store({{"w", weights, ParameterRole::trainable, Initialiser::uniform(1)}});
  CountingBackend backend(test_backend());
  const auto compiled = [&](bool derives, const Placement* placement) {
    Graph graph(Mode::inference);
    const Node w = graph.parameter("w", weights);
    const std::vector<ProgramOutput> outputs{{.node = matmul(graph.input("x", rows), derives ? tanh(w) : w)}};
    return compile(graph, outputs, backend, {.placement = placement});
  };
  const auto program = compiled(true, nullptr);
  const auto plain = compiled(false, &program->placement);
  REQUIRE(program->prologue_bytes >= static_cast<std::size_t>(weights.bytes()));
  store.place(program->placement, backend);
  const auto workspace =
      std::make_shared<Workspace>(backend, std::max(plain->arena_bytes, program->arena_bytes),
                                  std::max(plain->feed_bytes, program->feed_bytes));
  const Tensor x = whole_numbers(rows, 1);
  VM other(plain, backend, {.store = &store, .workspace = workspace});
  for (int run = 0; run < 2; ++run) other.run({{"x", x}});  // takes the slots that both are fed from
  other.wait();
  VM vm(program, backend, {.store = &store, .workspace = workspace});
  std::int64_t allocations = backend.counts().allocations;
  for (const std::int64_t expected : {1, 0, 0}) {
    vm.run({{"x", x}});
    vm.wait();
    CHECK(backend.counts().allocations - allocations == expected);
    allocations = backend.counts().allocations;
  }
  const Tensor before = vm.output();
  store.write("w", whole_numbers(weights, 2));
  vm.run({{"x", x}});
  CHECK(!(vm.output() == before));
}

}  // namespace plexaura::testing::prologue_test
