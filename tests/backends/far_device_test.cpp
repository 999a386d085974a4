#include <atomic>
#include <cmath>
#include <csignal>
#include <cstring>
#include <doctest/doctest.h>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/device/transfer.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/backend_fixture.h"

namespace plexaura::testing::far_device_test {

namespace {

std::atomic<int> probe_runs = 0;

// The op y = x. Counts its runs, and fails if x is negative.
struct Probe final : OpOf<Probe> {
  std::string_view name() const override { return "far_probe"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  void compute(const HostCall& call) const {
    ++probe_runs;
    if (call.inputs[0].as<float>()[0] < 0) throw std::runtime_error("the probe was given a negative number");
    copy_bytes(call.inputs[0], call.outputs[0]);
  }
};

std::unique_ptr<Backend> open_far(const char* lazy = "0", const char* regions = "0") {
  probe_runs = 0;
  return open_backend("far", {{"lazy", lazy}, {"regions", regions}});
}

struct ProbeGraph {
  Graph graph;
  Node x = graph.input("x", {DType::float32, {4}});
  Node y = apply(std::make_shared<Probe>(), {x});
  Region region() const { return single(graph, y.id()); }
  Tensor value(double start = 0.25) const { return counting(x.type(), start); }
};

bool dies_of_reading(const std::byte* address) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    const auto value = std::to_integer<int>(*static_cast<const volatile std::byte*>(address));
    _exit(value & 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

bool all_nan(const Tensor& tensor) {
  for (const double element : tensor.to_doubles())
    if (!std::isnan(element)) return false;
  return true;
}

// Runs a region on the far device or on one thread of the CPU.
Tensor on(Backend& backend, const Graph& graph, NodeId node, const std::vector<Tensor>& inputs) {
  RegionRun run(backend, graph, single(graph, node), inputs);
  run.launch();
  return run.output().read();
}

}  // namespace

TEST_CASE("an address of the far device faults on the host") {
  const auto backend = open_far();
  const auto memory = backend->allocate(64, MemoryUse::device);
  CHECK(dies_of_reading(memory->address()));
  const auto staging = backend->allocate(64, MemoryUse::staging);
  CHECK(!dies_of_reading(staging->address()));
}

TEST_CASE("fresh memory is NaN, also where something lay before") {
  const auto backend = open_far();
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::float16}) {
    DeviceValue value(*backend, {dtype, {3, 5}}, Layout::row_major(2));
    CHECK(all_nan(value.read()));
    value.write(counting({dtype, {3, 5}}));
    CHECK(!all_nan(value.read()));
  }
}

TEST_CASE("more memory than the far device has is refused") {
  const auto backend = open_far();
  CHECK_THROWS_AS(backend->allocate(std::size_t{1} << 50, MemoryUse::device), DeviceError);
}

TEST_CASE("freed memory is used again") {
  const auto backend = open_far();
  for (int i = 0; i < 100; ++i) {
    const auto large = backend->allocate(std::size_t{1} << 20, MemoryUse::device);
    const auto small = backend->allocate(1, MemoryUse::device);
    CHECK(large->address() != small->address());
  }
}

TEST_CASE("the far device takes only addresses that are its own and alive") {
  const auto backend = open_far();
  std::vector<std::byte> host(64);
  const auto memory = backend->allocate(64, MemoryUse::device);
  CHECK_THROWS_AS(backend->copy(Stream::compute, memory->address(), host.data(), 64), InternalError);
  CHECK_THROWS_AS(backend->copy(Stream::compute, memory->address(), memory->address() + 32, 64),
                  InternalError);
  auto freed = backend->allocate(64, MemoryUse::device);
  const Address stale = freed->address();
  freed.reset();
  CHECK_THROWS_AS(backend->copy(Stream::compute, memory->address(), stale, 64), InternalError);
}

TEST_CASE("lazy: nothing starts until somebody waits, and no more than he waits for") {
  const auto backend = open_far("1");
  ProbeGraph probe;
  RegionRun run(*backend, probe.graph, probe.region(), {probe.value()});
  const auto first = backend->make_event();
  const auto second = backend->make_event();
  run.launch();
  first->record(Stream::compute);
  run.launch();
  second->record(Stream::compute);
  CHECK(!first->passed());
  CHECK(probe_runs == 0);
  first->wait();
  CHECK(probe_runs == 1);
  CHECK(!second->passed());
  second->wait();
  CHECK(probe_runs == 2);
}

TEST_CASE("an event orders two streams") {
  for (const char* lazy : {"0", "1"}) {
    const auto backend = open_far(lazy);
    ProbeGraph probe;
    RegionRun run(*backend, probe.graph, probe.region(), {probe.value()});
    const auto staging = backend->allocate(16, MemoryUse::staging);
    const auto computed = backend->make_event();
    const auto copied = backend->make_event();
    for (int step = 0; step < 20; ++step) {
      run.launch();
      computed->record(Stream::compute);
      computed->hold(Stream::copy);
      backend->copy(Stream::copy, staging->address(), run.output().address(), 16);
      copied->record(Stream::copy);
      copied->hold(Stream::compute);
    }
    copied->wait();
    CHECK(probe_runs == 20);
    CHECK(std::memcmp(staging->address(), probe.value().data(), 16) == 0);
  }
}

TEST_CASE("a stream waits for the host's signal, from any thread") {
  for (const char* lazy : {"0", "1"}) {
    const auto backend = open_far(lazy);
    ProbeGraph probe;
    RegionRun run(*backend, probe.graph, probe.region(), {probe.value()});
    const auto weights = backend->make_event();
    const auto done = backend->make_event();
    for (int step = 1; step <= 3; ++step) {
      weights->reset();
      weights->hold(Stream::compute);
      run.launch();
      done->record(Stream::compute);
      CHECK(probe_runs == step - 1);
      CHECK(!done->passed());
      std::thread communication([&] { weights->signal(); });
      done->wait();
      communication.join();
      CHECK(probe_runs == step);
    }
  }
}

TEST_CASE("any thread may wait for an event") {
  const auto backend = open_far();
  ProbeGraph probe;
  RegionRun run(*backend, probe.graph, probe.region(), {probe.value()});
  const auto done = backend->make_event();
  std::thread communication([&] {
    while (!done->passed()) std::this_thread::yield();
    done->wait();
  });
  run.launch();
  done->record(Stream::compute);
  communication.join();
  CHECK(probe_runs == 1);
}

TEST_CASE("a failing kernel shows once, at the next wait, with its node") {
  for (const char* lazy : {"0", "1"}) {
    const auto backend = open_far(lazy);
    ProbeGraph probe;
    RegionRun run(*backend, probe.graph, probe.region(), {probe.value(-1)});
    CHECK_NOTHROW(run.launch());
    try {
      wait_for(*backend);
      FAIL("the failure was lost");
    } catch (const DeviceError& error) {
      CHECK(std::string(error.what()).starts_with("far_probe %1 of "));
      CHECK(std::string(error.what()).ends_with("the probe was given a negative number"));
    }
    CHECK_NOTHROW(wait_for(*backend));
  }
}

TEST_CASE("events and copies to fixed staging memory can be recorded") {
  for (const char* lazy : {"0", "1"}) {
    const auto backend = open_far(lazy);
    ProbeGraph probe;
    RegionRun run(*backend, probe.graph, probe.region(), {probe.value()});
    const auto staging = backend->allocate(16, MemoryUse::staging);
    const auto computed = backend->make_event();
    const auto copied = backend->make_event();
    const auto recording = backend->record([&] {
      run.launch();
      computed->record(Stream::compute);
      computed->hold(Stream::copy);
      backend->copy(Stream::copy, staging->address(), run.output().address(), 16);
      copied->record(Stream::copy);
    });
    CHECK(probe_runs == 0);
    CHECK(!copied->passed());
    for (const double start : {1.0, 2.0, 3.0}) {
      run.input(0).write(probe.value(start));
      recording->replay();
      // the simulated work has only been enqueued
      if (std::string_view(lazy) == "1") CHECK(!copied->passed());
      copied->wait();
      CHECK(std::memcmp(staging->address(), probe.value(start).data(), 16) == 0);
    }
    CHECK(probe_runs == 3);
  }
}

TEST_CASE("a recording takes no copy from pageable memory") {
  const auto backend = open_far();
  const auto device = backend->allocate(16, MemoryUse::device);
  std::vector<std::byte> pageable(16);
  CHECK_THROWS_WITH_AS(
      backend->record([&] { backend->copy(Stream::compute, device->address(), pageable.data(), 16); }),
      doctest::Contains("no live memory"), InternalError);
}

TEST_CASE("a replay finds that memory of the recording was freed") {
  const auto backend = open_far();
  const auto device = backend->allocate(16, MemoryUse::device);
  auto staging = backend->allocate(16, MemoryUse::staging);
  const auto recording =
      backend->record([&] { backend->copy(Stream::compute, device->address(), staging->address(), 16); });
  CHECK_NOTHROW(recording->replay());
  wait_for(*backend);
  staging.reset();
  CHECK_THROWS_WITH_AS(recording->replay(), doctest::Contains("no live memory"), InternalError);
}

TEST_CASE("images lie channels last, padded with zeros") {
  const auto backend = open_far();
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, 3, 4, 5}});
  const Node y = exp(x);
  RegionRun run(*backend, graph, single(graph, y.id()), {counting(x.type())});
  CHECK(to_string(run.candidate().inputs[0]) == "acdB8b");
  CHECK(to_string(run.candidate().outputs[0]) == "acdB8b");
  run.launch();
  const std::vector<std::byte> bytes = run.output().read_bytes();
  const auto* elements = reinterpret_cast<const float*>(bytes.data());
  for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) CHECK((elements[i] == 0) == (i % 8 >= 3));
}

TEST_CASE("results are those of the portable kernels, bit for bit") {
  const auto backend = open_far();
  for (const DType dtype : {DType::float32, DType::float64}) {
    Graph graph;
    const Node x = graph.input("x", {dtype, {2, 17, 3, 5}});
    const Node scale = graph.input("scale", {dtype, {1, 17, 1, 1}});
    const Node a = graph.input("a", {dtype, {33, 65}});
    const Node b = graph.input("b", {dtype, {65, 7}});
    const Tensor of_x = counting(x.type(), 0.3, 0.01);
    const Tensor of_scale = counting(scale.type(), -0.7, 0.1);
    const Node scaled = x * scale;
    const Node product = matmul(a, b);
    const Node total = sum(x);
    const auto same = [&](const Node& node, const std::vector<Tensor>& inputs) {
      return on(*backend, graph, node.id(), inputs) == on(oracle(), graph, node.id(), inputs);
    };
    CHECK(same(scaled, {of_x, of_scale}));
    CHECK(same(product, {counting(a.type(), 0.1, 0.3), counting(b.type(), 0.1, 0.7)}));
    CHECK(same(total, {of_x}));
  }
}

TEST_CASE("a region of two nodes computes what they do one by one") {
  const auto backend = open_far("0", "1");
  Graph graph;
  const Node a = graph.input("a", {DType::float32, {2, 3, 4, 5}});
  const Node b = graph.input("b", {DType::float32, {3, 1, 1}});
  const Node c = graph.input("c", {DType::float32, {2, 3, 4, 5}});
  const Node product = a * b;
  const Node y = c + product;
  const std::vector<Value> kept{y.value()};
  const std::vector<Region> regions = backend->regions(graph, y.id(), Uses(graph, kept));
  REQUIRE(regions.size() == 1);
  CHECK(regions[0].kind == "mul+add");
  CHECK(regions[0].nodes == std::vector<NodeId>{product.id(), y.id()});
  const std::vector<Tensor> inputs{counting(a.type()), counting(b.type()), counting(c.type(), 9)};
  RegionRun run(*backend, graph, regions[0], inputs);
  run.launch();

  const Tensor apart = on(oracle(), graph, product.id(), {inputs[0], inputs[1]});
  CHECK(run.output().read() == on(oracle(), graph, y.id(), {inputs[2], apart}));
}

TEST_CASE("without the option there are no regions; unknown options are refused") {
  const auto backend = open_far();
  Graph graph;
  const Node a = graph.input("a", {DType::float32, {2}});
  const Node y = a * a + a;
  const std::vector<Value> kept{y.value()};
  CHECK(backend->regions(graph, y.id(), Uses(graph, kept)).empty());
  CHECK_THROWS_WITH_AS(open_backend("far", {{"lzay", "1"}}), doctest::Contains("no option 'lzay'"),
                       UserError);
  CHECK_THROWS_WITH_AS(open_backend("far", {{"lazy", "yes"}}), doctest::Contains("must be 0 or 1"),
                       UserError);
}

TEST_CASE("elementwise ops run in place") {
  const auto backend = open_far();
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{7}}) {
    Graph graph;
    const Node x = graph.input("x", {DType::float32, shape});
    const Node y = neg(x);
    RegionRun run(*backend, graph, single(graph, y.id()), {counting(x.type())}, {.in_place = {{0, 0}}});
    CHECK(run.candidate().in_place == std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}});
    run.launch();
    CHECK(run.output().read() == counting(x.type(), -0.25, -0.25));
  }
}

}  // namespace plexaura::testing::far_device_test
