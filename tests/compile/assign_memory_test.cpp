#include "core/compile/assign_memory.h"

#include <cmath>
#include <doctest/doctest.h>

#include "core/compile/compile.h"
#include "core/compile/recompute_schedule.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"
#include "tests/support/pattern.h"

namespace plexaura::testing::assign_memory_test {

namespace {

const TensorType four{DType::float32, {4}};  // less than the granule of 64 bytes

// A kernel that only needs scratch memory.
class Needing final : public plexaura::Kernel {
 public:
  explicit Needing(std::size_t workspace) : workspace_(workspace) {}
  std::size_t workspace() const override { return workspace_; }
  std::unique_ptr<Launch> bind(const Binding&) const override { return nullptr; }

 private:
  std::size_t workspace_;
};

struct Kernel {
  bool in_place = false;  // output 0 may use the memory of input 0
  bool prologue = false;
  std::vector<bool> reads = {};
  std::size_t workspace = 0;
};

// A lowered graph with one step for each node, as if a backend had offered these kernels.
struct Steps {
  Steps() { lowered.graph = std::make_unique<Graph>(); }

  Node input(const char* name) {
    const Node node = lowered.graph->input(name, four);
    lowered.layouts[node.value()] = Layout::row_major(1);
    homes[node.value()] = {Place::Space::feed, 0, 0};
    return node;
  }

  Node bind(const Node& node, const Kernel& kernel) {
    const std::vector<Value>& inputs = lowered.graph->record(node.id()).inputs;
    BoundInstruction step{{"", {node.id()}, inputs, {node.value()}}, {}, {}, inputs, {true}, kernel.prologue};
    if (kernel.in_place) step.candidate.in_place = {{0, 0}};
    step.candidate.reads = kernel.reads;
    step.work = KernelWork{std::make_shared<Needing>(kernel.workspace)};
    lowered.steps.push_back(step);
    lowered.layouts[node.value()] = Layout::row_major(1);
    return node;
  }

  Assignment assigned(std::initializer_list<Node> roots, bool reuse = true) {
    for (const Node& root : roots) lowered.roots.push_back(root.value());
    const Assignment memory = assign_memory(lowered, homes, reuse);
    const RecomputeSchedule schedule(lowered, homes);
    const KeptSteps all(schedule.steps(), true);
    if (reuse) CHECK(schedule.peak(schedule.order(all), all) == memory.arena_lower_bound);
    return memory;
  }

  Lowered lowered;
  std::map<Value, Place> homes;
};

bool same_place(const Assignment& memory, const Node& a, const Node& b) {
  return memory.places.at(a.value()) == memory.places.at(b.value());
}

constexpr Kernel in_place{.in_place = true};

}  // namespace

TEST_CASE("a chain of kernels that work in place lies in one piece") {
  Steps steps;
  const Node a = steps.bind(neg(steps.input("x")), {});
  const Node b = steps.bind(neg(a), in_place);
  const Node c = steps.bind(neg(b), in_place);
  const Assignment memory = steps.assigned({c});
  CHECK(same_place(memory, a, b));
  CHECK(same_place(memory, b, c));
  CHECK(memory.arena_bytes == 64);
}

TEST_CASE("a feed is never overwritten in place") {
  Steps steps;
  const Node x = steps.input("x");
  const Node y = steps.bind(neg(x), in_place);
  CHECK(!same_place(steps.assigned({y}), x, y));
}

TEST_CASE("a value that is read again is not overwritten in place") {
  Steps steps;
  const Node a = steps.bind(neg(steps.input("x")), {});
  const Node b = steps.bind(neg(a), in_place);
  const Node c = steps.bind(a + b, in_place);
  const Assignment memory = steps.assigned({c});
  CHECK(!same_place(memory, a, b));
  CHECK(same_place(memory, a, c));
}

TEST_CASE("a value that the kernel also reads through another operand is not overwritten in place") {
  const auto lies_in_place = [](std::vector<bool> reads) {
    Steps steps;
    const Node a = steps.bind(neg(steps.input("x")), {});
    const Node b = steps.bind(a + a, {.in_place = true, .reads = std::move(reads)});
    return same_place(steps.assigned({b}), a, b);
  };
  CHECK(!lies_in_place({}));
  CHECK(lies_in_place({true, false}));
}

TEST_CASE("an output of the program is not overwritten in place") {
  Steps steps;
  const Node a = steps.bind(neg(steps.input("x")), {});
  const Node b = steps.bind(neg(a), in_place);
  CHECK(!same_place(steps.assigned({a, b}), a, b));
}

TEST_CASE("a value of another size is not put in place") {
  Steps steps;
  const Node a = steps.bind(neg(steps.input("x")), {});
  const Node b = steps.bind(cast(a, DType::float64), in_place);
  CHECK(!same_place(steps.assigned({b}), a, b));
}

TEST_CASE("only the prologue overwrites its values in place, because the next run reads them") {
  Steps steps;
  const Node a = steps.bind(neg(steps.input("x")), {.prologue = true});
  const Node b = steps.bind(neg(a), {.in_place = true, .prologue = true});
  const Node c = steps.bind(neg(b), in_place);
  const Assignment memory = steps.assigned({c});
  CHECK(same_place(memory, a, b));
  CHECK(memory.places.at(b.value()).space == Place::Space::prologue);
  CHECK(memory.places.at(c.value()).space == Place::Space::arena);
  CHECK(memory.prologue_bytes == 64);
}

TEST_CASE("values of the prologue lie apart") {
  Steps steps;
  const Node x = steps.input("x");
  const Node a = steps.bind(neg(x), {.prologue = true});
  const Node b = steps.bind(exp(x), {.prologue = true});
  const Assignment memory = steps.assigned({steps.bind(a + b, {})});
  CHECK(!same_place(memory, a, b));
  CHECK(memory.prologue_bytes == 128);
}

TEST_CASE("the prologue overwrites nothing that the program reads, wherever it stands in the graph") {
  Steps steps;
  const Node x = steps.input("x");
  const Node shared = steps.bind(neg(x), {.prologue = true});
  const Node product = steps.bind(shared * x, {});
  const Node later = steps.bind(exp(shared), {.in_place = true, .prologue = true});
  const Assignment memory = steps.assigned({product, later});
  CHECK(!same_place(memory, shared, later));
}

TEST_CASE("a value that only the prologue reads gives its memory to a later one") {
  Steps steps;
  const Node a = steps.bind(neg(steps.input("x")), {.prologue = true});
  const Node b = steps.bind(exp(a), {.prologue = true});
  const Node c = steps.bind(neg(b), {.prologue = true});
  const Assignment memory = steps.assigned({steps.bind(neg(c), {})});
  CHECK(same_place(memory, a, c));
  CHECK(memory.prologue_bytes == 128);
}

TEST_CASE("scratch memory lies beside what the kernel reads and writes") {
  Steps steps;
  const Node a = steps.bind(neg(steps.input("x")), {});
  const Node b = steps.bind(neg(a), {.workspace = 100});
  const Assignment memory = steps.assigned({b});
  CHECK(memory.arena_bytes == 64 + 64 + 128);
  CHECK(!(memory.workspaces[1] == memory.places.at(a.value())));
  CHECK(!(memory.workspaces[1] == memory.places.at(b.value())));
}

TEST_CASE("without reuse every value keeps memory of its own") {
  Steps steps;
  const Node a = steps.bind(neg(steps.input("x")), {});
  const Node b = steps.bind(neg(a), in_place);
  const Node c = steps.bind(neg(b), in_place);
  CHECK(steps.assigned({c}, false).arena_bytes == 3 * 64);
}

TEST_CASE("what derives from parameters is the same in every run") {
  Graph graph(Mode::inference);
  const Node w = graph.parameter("w", four);
  const Node x = graph.input("x", four);
  const Node y = neg(exp(w * 2) + x);
  const std::vector<ProgramOutput> outputs{{.node = y}};
  const auto program = compile(graph, outputs, test_backend());
  ParameterStore store({{"w", four, ParameterRole::trainable, Initialiser::constant(1), {}}});
  store.place(program->placement, test_backend());
  VM vm(program, test_backend(), {.store = &store});
  for (int run = 0; run < 4; ++run) {
    vm.run({{"x", Tensor::of<float>({4}, {0, 1, 2, 3})}});
    const double e2 = std::exp(2.0);
    check_close(vm.output(), {-e2, -e2 - 1, -e2 - 2, -e2 - 3}, 1e-6);
  }
}

TEST_CASE("a value of parameters alone is shared by an output and by an instruction that stands before it") {
  Graph graph(Mode::inference);
  const Node x = graph.input("x", four);
  const Node squared = square(graph.parameter("w", four));
  const Node product = squared * x;
  const std::vector<ProgramOutput> outputs{{.node = product}, {.node = exp(squared)}};
  const auto program = compile(graph, outputs, test_backend());
  ParameterStore store({{"w", four, ParameterRole::trainable, Initialiser::constant(2), {}}});
  store.place(program->placement, test_backend());
  VM vm(program, test_backend(), {.store = &store});
  for (int run = 0; run < 2; ++run) {
    vm.run({{"x", Tensor::of<float>({4}, {0, 1, 2, 3})}});
    check_close(vm.output(), {0, 4, 8, 12}, 1e-6);
  }
}

}  // namespace plexaura::testing::assign_memory_test
