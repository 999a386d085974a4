#include <algorithm>
#include <doctest/doctest.h>

#include "backends/cpu/cpu_backend.h"
#include "core/autodiff/gradients.h"
#include "core/compile/compile.h"
#include "core/graph/uses.h"
#include "core/ops/activations.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/shape.h"
#include "core/ops/special_functions.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/backend_fixture.h"
#include "tests/support/pattern.h"

namespace plexaura::testing::chain_test {

namespace {

struct Net {
  Node input(const char* name, DType dtype, const Shape& shape) {
    return inputs.emplace_back(graph.input(name, {dtype, shape}));
  }
  std::vector<std::size_t> sizes_of_instructions(Backend& backend) const {
    std::vector<ProgramOutput> outputs;
    for (const Node& node : results) outputs.push_back({.node = node});
    std::vector<std::size_t> sizes;
    const auto program = compile(graph, outputs, backend);
    for (const Instruction& instruction : program->instructions) sizes.push_back(instruction.nodes.size());
    return sizes;
  }
  // Compares the bits of the results with those of the ops one by one.
  void check_bits(Backend& backend) const {
    std::vector<Tensor> values;
    std::int64_t step = 5;
    for (const Node& node : inputs) values.push_back(pattern(node.shape(), step += 2).cast(node.dtype()));
    const auto together = Runner(graph, results, backend)(values);
    const auto one_by_one = Runner(graph, results, backend, {.optimise = false})(values);
    for (std::size_t i = 0; i < results.size(); ++i)
      CHECK(together[i].to_doubles() == one_by_one[i].to_doubles());
  }

  Graph graph;
  std::vector<Node> inputs;
  std::vector<Node> results;
};

using Activation = Node (*)(Operand);
const std::vector<Activation> activations{[](Operand x) { return elu(x, 0.7); },
                                          [](Operand x) { return celu(x, 0.7); },
                                          [](Operand x) { return leaky_relu(x, 0.1); },
                                          log_sigmoid,
                                          [](Operand x) { return erfc(x); },
                                          selu,
                                          softsign,
                                          hard_sigmoid,
                                          mish};

// Appends a number of additions and multiplications, of which each but the last is read once.
Node long_chain(Node x, const Node& y, int ops) {
  for (int i = 0; i < ops; ++i) x = i % 2 == 0 ? x + y : x * 0.75;
  return x;
}

}  // namespace

TEST_CASE("a chain of elementwise ops is one instruction on the CPU, and has the bits of the single ops") {
  const auto cpu = make_cpu_backend();
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::float16})
    for (const Shape& shape : {Shape{4097}, Shape{3, 5, 1111}, Shape{70000}}) {
      CAPTURE(name_of(dtype));
      Net net;
      const Node a = net.input("a", dtype, shape);
      const Node b = net.input("b", dtype, shape);
      const Node s = net.input("s", dtype, {});
      net.results = {where(ge(a, s), relu(a + b) * s, leaky_relu(a, 0.3) - b)};
      CHECK(net.sizes_of_instructions(*cpu) == std::vector<std::size_t>{7});
      net.check_bits(*cpu);
    }
}

TEST_CASE("a chain of the CPU may have masks, casts and results of several sizes") {
  const auto cpu = make_cpu_backend();
  Net net;
  const Node a = net.input("a", DType::float32, {5000});
  const Node b = net.input("b", DType::float64, {5000});
  const Node mask = net.input("mask", DType::boolean, {5000});
  net.results = {cast(where(mask, cast(a, DType::float64) * b, b - 1), DType::float32)};
  CHECK(net.sizes_of_instructions(*cpu) == std::vector<std::size_t>{5});
  net.check_bits(*cpu);
}

TEST_CASE("ops on small values are no chain on the CPU") {
  const auto cpu = make_cpu_backend();
  Net net;
  const Node small = net.input("small", DType::float32, {4095});
  net.results = {exp(small) * 2};
  CHECK(net.sizes_of_instructions(*cpu) == std::vector<std::size_t>{1, 1});
}

TEST_CASE("a value that another op or the caller reads ends a chain") {
  const auto cpu = make_cpu_backend();
  Net net;
  const Node a = net.input("a", DType::float32, {6000});
  const Node b = net.input("b", DType::float32, {6000});
  const Node kept = exp(a) * b;
  const Node row = net.input("row", DType::float32, {3, 1});
  const Node broadcast = reshape(tanh(kept - 1), {3, 2000}) + row;
  net.results = {kept, neg(broadcast) * 2};
  CHECK(net.sizes_of_instructions(*cpu) == std::vector<std::size_t>{2, 2, 1, 2});
  net.check_bits(*cpu);
}

TEST_CASE("long chains are divided, and their blocks have room for all values that are read later") {
  const auto cpu = make_cpu_backend();
  for (const int ops : {15, 16, 17, 60}) {
    Net net;
    const Node x = net.input("x", DType::float64, {5000});
    const Node y = net.input("y", DType::float64, {5000});
    net.results = {long_chain(x, y, ops)};
    const auto sizes = net.sizes_of_instructions(*cpu);
    CHECK(sizes.size() == static_cast<std::size_t>((ops + 15) / 16));
    net.check_bits(*cpu);
  }
  Net net;  // all functions of x are read last
  const Node x = net.input("x", DType::float64, {5000});
  std::vector<Node> open;
  for (int i = 0; i < 8; ++i) open.push_back(x * (i + 0.5));
  Node sum = open[0];
  for (std::size_t i = 1; i < open.size(); ++i) sum = sum - open[i];
  net.results = {sum};
  net.check_bits(*cpu);
}

TEST_CASE("the gradient of an activation is one instruction") {
  const auto cpu = make_cpu_backend();
  for (const Activation op : activations) {
    Net net;
    const Node x = net.input("x", DType::float32, {5000});
    const Node y = op(x);
    net.results = {
        y, vjp(std::vector{y}, std::vector{net.input("g", DType::float32, {5000})}, std::vector{x})[0]};
    CHECK(net.sizes_of_instructions(*cpu).size() == 2);
    net.check_bits(*cpu);
  }
}

TEST_CASE("a chain between convolutions is computed in blocks of channels, whose padding stays zero") {
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const std::int64_t channels : {16, 17}) {
    CAPTURE(channels);
    Graph graph;
    const Node x = graph.input("x", {DType::float32, {2, channels, 15, 15}});
    const Node y = graph.input("y", x.type());
    const Node result = exp(x * 0.5) + y;  // 1 for a padding of zeros
    const std::vector<Tensor> feeds{drawn(x.type(), "x"), drawn(x.type(), "y")};
    const std::vector<Region> regions =
        fast->regions(graph, result.id(), Uses(graph, std::vector{result.value()}));
    const auto found = std::ranges::find(regions, "chain mul+exp+add", &Region::kind);
    REQUIRE(found != regions.end());
    REQUIRE(found->inputs.size() == 3);
    const Layout blocks = blocked_channels(16);
    std::vector<Tensor> operands;
    std::vector<std::optional<Layout>> given;
    for (const Value input : found->inputs) {
      const bool is_number = graph.type(input).shape.elements() == 1;
      operands.push_back(is_number ? Tensor::of<float>(graph.type(input).shape, {0.5F})
                                   : (input == x.value() ? feeds[0] : feeds[1]));
      given.push_back(is_number ? std::nullopt : std::optional(blocks));
    }
    RegionRun run(*fast, graph, *found, operands, {.given = given});
    CHECK(run.candidate().outputs[0] == blocks);
    run.output().spoil();
    run.launch();
    const std::vector<double> own = run.output().read().to_doubles();
    const std::vector<double> expected = Runner(graph, {result}, *portable)(feeds)[0].to_doubles();
    for (std::size_t i = 0; i < own.size(); ++i) CHECK(std::abs(own[i] - expected[i]) < 1e-6);
    const std::vector<std::byte> bytes = run.output().read_bytes();
    const auto* elements = reinterpret_cast<const float*>(bytes.data());
    const auto places = static_cast<std::int64_t>(bytes.size() / sizeof(float));
    CHECK(std::count(elements, elements + places, 0.F) == places - result.shape().elements());
  }
}

}  // namespace plexaura::testing::chain_test
