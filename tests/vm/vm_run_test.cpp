// Tests runs that stop at host points, and fail there or are left.
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "backends/registry.h"
#include "core/compile/compile.h"
#include "core/loops/denormals.h"
#include "core/ops/binary.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/points.h"

namespace plexaura::testing::vm_run_test {

namespace {

const TensorType type{DType::float32, {2}};
const std::string failed = "VmRun: this run has failed; begin another one";

// y = x. Its kernel fails once after breaks() was set to true.
struct Breaking final : OpOf<Breaking> {
  static bool& breaks() {
    static bool breaks = false;
    return breaks;
  }
  std::string_view name() const override { return "breaking_of_vm_run"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  void compute(const HostCall& call) const {
    if (std::exchange(breaks(), false)) throw std::runtime_error("broke");
    copy_bytes(call.inputs[0], call.outputs[0]);
  }
};

// A program that adds one to a buffer, in a kernel that may fail, with points before and after it.
struct Counting {
  Graph graph;
  std::unique_ptr<Backend> own = open_backend("portable");
  std::unique_ptr<ParameterStore> store;
  std::unique_ptr<VM> vm;

  Counting() {
    const Node total = graph.buffer("total", type);
    const Node next = apply(std::make_shared<Breaking>(), {total + 1});
    graph.update(total, next);
    store = std::make_unique<ParameterStore>(
        std::vector<ParameterSpec>{{"total", type, ParameterRole::buffer, Initialiser::zeros()}});
    const std::vector<ProgramOutput> outputs{{.node = next}};
    auto program = compile(graph, outputs, *own);
    const std::size_t end = program->instructions.size();
    vm = std::make_unique<VM>(std::move(program), *own,
                              VmOptions{.store = store.get(), .host_points = {{0, 0}, {end, 1}}});
  }
};

}  // namespace

TEST_CASE("a run whose next() threw goes on nowhere, and the VM makes other runs") {
  Counting counting;
  const Denormals denormals = denormals_here();
  {
    VmRun run(*counting.vm, {});
    CHECK(run.next() == 0);
    Breaking::breaks() = true;
    CHECK(device_error([&] { run.next(); }).find("broke") != std::string::npos);
    CHECK(denormals_here() == denormals);
    const std::uint64_t version = counting.store->version();
    CHECK(user_error([&] { run.next(); }) == failed);
    CHECK(user_error([&] { run.end(); }) == failed);
    CHECK(counting.store->version() == version);
  }
  CHECK(user_error([&] { counting.vm->output(); }).find("the last run failed") != std::string::npos);
  CHECK(counting.store->read("total").to_doubles()[0] == 0);
  counting.vm->run({});
  CHECK(counting.vm->output().to_doubles()[0] == 1);
}

TEST_CASE("a run that has ended does nothing more") {
  Counting counting;
  VmRun run(*counting.vm, {});
  CHECK(run.next() == 0);
  run.end();
  const std::uint64_t version = counting.store->version();
  run.end();
  CHECK(!run.next());
  CHECK(counting.store->version() == version);
}

TEST_CASE("a run refuses to go on when its store was placed anew at a host point") {
  Counting counting;
  {
    VmRun run(*counting.vm, {});
    CHECK(run.next() == 0);
    counting.store->place(counting.store->placement(), *counting.own);
    CHECK(user_error([&] { run.next(); }).starts_with("the store was placed anew"));
    CHECK(user_error([&] { run.next(); }) == failed);
  }
  CHECK(counting.store->read("total").to_doubles()[0] == 0);
  CHECK(user_error([&] { counting.vm->run({}); }).starts_with("the store was placed anew"));
}

TEST_CASE("a run refuses to go on when its backend was destroyed at a host point, and may be left then") {
  for (const bool goes_on : {true, false}) {
    Counting counting;
    VmRun run(*counting.vm, {});
    CHECK(run.next() == 0);
    counting.own.reset();
    if (goes_on) CHECK(user_error([&] { run.next(); }).starts_with("the backend was destroyed before"));
  }
}

TEST_CASE("a host point beyond the end of the program is refused, and one at the end is not") {
  Graph graph;
  const std::vector<ProgramOutput> outputs{{.node = graph.input("x", type) + 1}};
  const auto program = compile(graph, outputs, test_backend());
  const std::size_t end = program->instructions.size();
  for (const std::function<void()>& enqueue : {std::function<void()>(), std::function<void()>([] {})}) {
    VM(program, test_backend(), {.host_points = {{end, 6, enqueue}}});
    CHECK(error_text<InternalError>([&] {
            VM(program, test_backend(), {.host_points = {{0}, {end + 1, 7, enqueue}}});
          }).find("the host point 7 is at place " + std::to_string(end + 1)) != std::string::npos);
  }
}

TEST_CASE("a run stops at points with and without copies to enqueue, in the order of the instructions") {
  Graph graph;
  const Node x = graph.input("x", type);
  const std::vector<ProgramOutput> outputs{{.node = (x + 1) * 2 + 3}};
  const auto program = compile(graph, outputs, oracle(), {.optimise = false});
  REQUIRE(program->instructions.size() == 3);
  std::vector<std::size_t> enqueued;
  const auto inner = [&](std::size_t instruction, std::size_t id) {
    return HostPoint{instruction, id, [&enqueued, id] { enqueued.push_back(id); }};
  };
  VM vm(program, oracle(),
        {.host_points = {{3, 30}, inner(2, 21), {1, 10}, {1, 11}, inner(0, 1), inner(3, 29)}});
  for (int round = 0; round < 2; ++round) {
    enqueued.clear();
    std::vector<std::size_t> stopped;
    run_with_points(vm, {{"x", Tensor(type)}}, [&](std::size_t id) { stopped.push_back(id); });
    CHECK(stopped == std::vector<std::size_t>{1, 10, 11, 21, 30, 29});
    CHECK(enqueued == std::vector<std::size_t>{1, 21, 29});
    CHECK(vm.output().to_doubles()[0] == 5);
  }
}

}  // namespace plexaura::testing::vm_run_test
