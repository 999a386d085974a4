// Tests what is counted for a GPU that need not exist: calls, bytes, operations and the least time.

#include <algorithm>
#include <doctest/doctest.h>
#include <functional>

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/compile/compile.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"

namespace plexaura::testing::described_backend_test {

namespace {

using Kind = EnqueuedCall::Kind;

// Returns the account of one run.
WorkAccount account_of(const Graph& graph, const Node& output, DescribedBackend& backend,
                       const std::vector<Tensor>& inputs) {
  const std::vector<ProgramOutput> outputs{{.node = output}};
  VM vm(compile(graph, outputs, backend), backend);
  const Feed feeds[] = {{"a", inputs[0]}, {"b", inputs[1]}};
  backend.begin_account();
  vm.run(feeds);
  return backend.end_account();
}

const EnqueuedCall& call_of(const WorkAccount& account, Kind kind, std::string_view what) {
  const auto found = std::ranges::find_if(
      account.calls, [&](const EnqueuedCall& call) { return call.kind == kind && call.what == what; });
  REQUIRE(found != account.calls.end());
  return *found;
}

using Binary = std::function<Node(const Node& a, const Node& b)>;

// Returns the account of a function of two values with these shapes.
WorkAccount account_of(const Binary& function, const Shape& of_a, const Shape& of_b,
                       const std::string& name = "cuda", DType dtype = DType::float32) {
  const auto backend = open_described_backend(name, "h200");
  Graph graph;
  const Node a = graph.input("a", {dtype, of_a});
  const Node b = graph.input("b", {dtype, of_b});
  return account_of(graph, function(a, b), *backend, {Tensor(a.type()), Tensor(b.type())});
}

Node product(const Node& a, const Node& b) { return matmul(a, b); }

}  // namespace

TEST_CASE("a run on a GPU that is described is counted: a graph, and the copy of what is fed") {
  const WorkAccount account =
      account_of([](const Node& a, const Node& b) { return tanh(matmul(a, b)); }, {64, 128}, {128, 32});
  CHECK(account.replays == 1);
  CHECK(account.calls.size() == 3);
  const EnqueuedCall& product = call_of(account, Kind::library, "matmul");
  constexpr double bytes = 4 * (64 * 128 + 128 * 32 + 64 * 32);
  constexpr double operations = 2.0 * 64 * 128 * 32;
  CHECK(product.bytes == bytes);
  CHECK(product.operations == operations);
  CHECK(product.seconds == doctest::Approx(std::max(bytes / 4.3e12, operations / 66.9e12)));
  CHECK(product.recorded);
  const EnqueuedCall& function = call_of(account, Kind::kernel, "tanh");
  CHECK(function.bytes == 2 * 4 * 64 * 32);
  CHECK(function.seconds == doctest::Approx(function.bytes / 4.3e12));
  const EnqueuedCall& copy = call_of(account, Kind::copy, "copy from the host");
  CHECK(copy.bytes >= 4 * (64 * 128 + 128 * 32));
  CHECK(copy.seconds == 0);
  CHECK_FALSE(copy.recorded);
}

TEST_CASE("products are counted with the matrices that they read, a factor of all of them once") {
  const auto elements = [](const WorkAccount& account) {
    return call_of(account, Kind::library, "matmul").bytes / 4;
  };
  CHECK(elements(account_of(product, {3, 64, 128}, {3, 128, 32})) == 3 * (64 * 128 + 128 * 32 + 64 * 32));
  CHECK(elements(account_of(product, {1, 64, 128}, {3, 128, 32})) == 64 * 128 + 3 * (128 * 32 + 64 * 32));
  const Binary transposed = [](const Node& a, const Node& b) { return matmul(a, b, {.transpose_a = true}); };
  CHECK(elements(account_of(transposed, {3, 128, 64}, {128, 32})) == 128 * 32 + 3 * (64 * 128 + 64 * 32));
}

TEST_CASE("a product takes its bias along, and tf32 where that is asked for") {
  const Binary with_bias = [](const Node& a, const Node& b) { return matmul(a, b) + sum(b, {.axes = {0}}); };
  call_of(account_of(with_bias, {64, 128}, {128, 32}), Kind::library, "matmul+add");
  const auto speed = [](const std::string& name) {
    const WorkAccount account = account_of(product, {4096, 4096}, {4096, 4096}, name);
    const EnqueuedCall& call = call_of(account, Kind::library, "matmul");
    return call.operations / call.seconds;
  };
  CHECK(speed("cuda") == doctest::Approx(66.9e12));
  CHECK(speed("cuda:tf32=1") == doctest::Approx(494.7e12));
}

TEST_CASE("kernels are counted by their op, those of a region by its ops") {
  const auto names = [](const Binary& function) {
    std::string all;
    for (const EnqueuedCall& call : account_of(function, {64, 32}, {64, 32}).calls)
      if (call.kind == Kind::kernel) all += call.what + "\n";
    return all;
  };
  CHECK(names([](const Node& a, const Node& b) { return a + b; }) == "add\n");
  CHECK(names([](const Node& a, const Node& b) {
          const Graph::Scope scope(a.graph(), "block");
          return a + b;
        }) == "add\n");
  CHECK(names([](const Node& a, const Node& b) { return tanh(a + b); }) == "chain add+tanh\n");
}

TEST_CASE("a GPU that is described says how fast it is, and whether that was measured") {
  CHECK(open_described_backend("cuda", "h200")->speeds() ==
        "790 TFLOP/s in 16 bits and 4.3 TB/s, as measured");
  CHECK(open_described_backend("cuda", "a100")->speeds() ==
        "312 TFLOP/s in 16 bits and 2.0 TB/s, by its data sheet");
}

TEST_CASE("the least time of a product depends on the GPU and on the type") {
  const auto seconds = [](const std::string& name, const std::string& device, DType dtype) {
    const auto backend = open_described_backend(name, device);
    Graph graph;
    const Node a = graph.input("a", {dtype, {1, 1024, 32, 32}});
    const Node b = graph.input("b", {dtype, {1024, 1024, 3, 3}});
    const WorkAccount account =
        account_of(graph, conv2d(a, b, {.padding = {1, 1}}), *backend, {Tensor(a.type()), Tensor(b.type())});
    const EnqueuedCall& call = call_of(account, Kind::library, "conv2d");
    CHECK(call.operations == 2.0 * 1024 * 32 * 32 * 1024 * 9);
    return call.operations / call.seconds;
  };
  CHECK(seconds("cuda", "h200", DType::bfloat16) == doctest::Approx(790e12));
  CHECK(seconds("cuda", "h100", DType::float16) == doctest::Approx(798e12));
  CHECK(seconds("cuda", "a100", DType::bfloat16) == doctest::Approx(312e12));
  CHECK(seconds("cuda", "a100", DType::float32) == doctest::Approx(19.5e12));
  CHECK(seconds("cuda:tf32=1", "a100", DType::float32) == doctest::Approx(156e12));
  CHECK(seconds("cuda", "h200", DType::float64) == doctest::Approx(66.9e12));
  CHECK(seconds("cuda", "b200", DType::float32) == doctest::Approx(75e12));
  CHECK(seconds("cuda", "b200", DType::float64) == doctest::Approx(37e12));
  CHECK(seconds("cuda", "b200", DType::bfloat16) == doctest::Approx(2250e12));
}

TEST_CASE("a GPU that is described has as much memory as it says") {
  const auto backend = open_described_backend("cuda", "a100");
  CHECK(backend->memory_bytes() == 85'899'345'920);
  const auto half = backend->allocate(backend->memory_bytes() / 2, MemoryUse::device);
  CHECK(backend->most_bytes_used() >= backend->memory_bytes() / 2);
  CHECK_THROWS_WITH_AS(backend->allocate(backend->memory_bytes() / 2 + 1, MemoryUse::device),
                       doctest::Contains("use a smaller batch"), UserError);
}

TEST_CASE("nothing runs on a GPU that is only described unless it is counted") {
  const auto backend = open_described_backend("cuda", "h200");
  Graph graph;
  const Node a = graph.input("a", {DType::float32, {8, 8}});
  for (const Node& node : {tanh(a), matmul(a, a)}) {
    const std::vector<ProgramOutput> outputs{{.node = node}};
    VM vm(compile(graph, outputs, *backend), *backend);
    CHECK_THROWS_AS(vm.run({{"a", Tensor(a.type())}}), InternalError);
  }
}

}  // namespace plexaura::testing::described_backend_test
