#include "backends/cpu/cpu_backend.h"

#include <atomic>
#include <cstdint>
#include <doctest/doctest.h>
#include <fstream>
#include <string_view>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/reorder.h"
#include "core/ops/unary.h"
#include "tests/support/backend_fixture.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing::cpu_backend_test {

TEST_CASE("CPU memory is aligned, from 2 MiB on to huge pages, and writable to its end") {
  const auto backend = make_cpu_backend();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, std::size_t{5} << 20}) {
    const auto memory = backend->allocate(bytes, MemoryUse::device);
    CHECK(memory->bytes() == bytes);
    const std::uintptr_t alignment = bytes >= 2U << 20 ? 2U << 20 : 4096;
    CHECK(reinterpret_cast<std::uintptr_t>(memory->address()) % alignment == 0);
    if (bytes > 0) memory->address()[bytes - 1] = std::byte{1};
  }
}

TEST_CASE("more memory than there is is refused in a sentence with both sizes") {
  const auto backend = make_cpu_backend();
  CHECK_THROWS_WITH_AS(backend->allocate(std::size_t{1} << 50, MemoryUse::device),
                       doctest::Contains("1073741824.0 MiB"), DeviceError);
}

// Skipped with sanitizers, because they allocate memory themselves.
TEST_CASE("where a limit refuses memory that is there, the sentence says so" * doctest::skip(sanitized)) {
  const pid_t child = fork();  // in a child, because a process keeps its limit
  if (child == 0) {
    constexpr std::size_t most = std::size_t{64} << 20;  // allowed in addition to the present memory
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit{};
    limit.rlim_cur = limit.rlim_max = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + most;
    setrlimit(RLIMIT_AS, &limit);
    bool told = false;
    try {
      make_cpu_backend()->allocate(2 * most, MemoryUse::device);
    } catch (const DeviceError& error) {
      told = std::string_view(error.what()).find("is too low; raise it") != std::string_view::npos;
    }
    _exit(told ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("a recorded event has passed; a signalled one passes from another thread") {
  const auto backend = make_cpu_backend();
  const auto event = backend->make_event();
  CHECK(!event->passed());
  event->record(Stream::compute);
  CHECK(event->passed());
  event->reset();
  CHECK(!event->passed());
  std::atomic<bool> ready = false;
  std::thread other([&] {
    ready = true;
    event->signal();
  });
  event->wait();
  CHECK(ready);
  other.join();
}

TEST_CASE("a launch on a held stream waits for the host's signal") {
  const auto backend = make_cpu_backend();
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  const Node y = neg(x);
  RegionRun run(*backend, graph, single(graph, y.id()), {counting(x.type())});
  const auto event = backend->make_event();
  event->hold(Stream::compute);
  std::atomic<bool> signalled = false;
  std::thread other([&] {
    signalled = true;
    event->signal();
  });
  run.launch();
  CHECK(signalled);
  other.join();
  CHECK(run.output().read() == counting(x.type(), -0.25, -0.25));
}

TEST_CASE("elementwise ops run in place where shapes are equal, and only there") {
  const auto backend = make_portable_backend();
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {3, 4}});
  const Node row = graph.input("row", {DType::float32, {4}});
  const Node sum = row + x;
  RegionRun run(*backend, graph, single(graph, sum.id()),
                {counting(row.type(), 100, 100), counting(x.type())}, {.in_place = {{0, 1}}});
  CHECK(run.candidate().in_place == std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}});
  RegionRun apart(*backend, graph, single(graph, sum.id()),
                  {counting(row.type(), 100, 100), counting(x.type())});
  run.launch();
  apart.launch();
  CHECK(run.output().read() == apart.output().read());
}

TEST_CASE("equal kernels are made once, different ones apart") {
  const auto backend = make_cpu_backend();
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {5}});
  const auto kernel = [&](const Node& node) {
    const Region region = single(graph, node.id());
    const RegionQuery query{graph, region, {Layout::row_major(1)}, {true}};
    return backend->propose(query)[0].make();
  };
  CHECK(kernel(neg(x)) == kernel(neg(x)));
  CHECK(kernel(neg(x)) != kernel(exp(x)));
}

TEST_CASE("a region that no source offers gets no portable kernel, and its nodes get one each") {
  for (const auto& backend : {make_cpu_backend(), make_portable_backend()}) {
    Graph graph;
    const Node x = graph.input("x", {DType::float32, {5}});
    const Node y = neg(x);
    const Node z = exp(y);
    const Region region{"unknown to all", {y.id(), z.id()}, {x.value()}, {z.value()}};
    CHECK(backend->propose({graph, region, {Layout::row_major(1)}, {true}}).empty());
    CHECK(backend->propose({graph, single(graph, z.id()), {Layout::row_major(1)}, {true}}).size() == 1);
  }
}

TEST_CASE("an op without a host kernel gets no candidate") {
  const auto backend = make_portable_backend();
  struct Unknown final : Op {
    std::string_view name() const override { return "unknown_to_all"; }
    std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  };
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {5}});
  const Node y = apply(std::make_shared<Unknown>(), {x});
  const Region region = single(graph, y.id());
  CHECK(backend->propose({graph, region, {Layout::row_major(1)}, {true}}).empty());
}

}  // namespace plexaura::testing::cpu_backend_test
