#include "core/compile/recompute.h"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>

#include "core/autodiff/gradients.h"
#include "core/compile/compile.h"
#include "core/ops/attention.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "core/scan/scan.h"
#include "core/vm/vm.h"
#include "testing/run.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/check_program.h"
#include "tests/support/error_text.h"
#include "tests/support/least_arena.h"

namespace plexaura::testing::recompute_test {

namespace {

// A graph with its outputs: the loss and the gradients of all inputs.
struct Net {
  Graph graph;
  std::vector<Node> inputs;
  std::vector<Node> outputs;

  Node input(Shape shape) {
    inputs.push_back(graph.input(fmt::format("x{}", inputs.size()), {DType::float32, std::move(shape)}));
    return inputs.back();
  }
  void differentiate(const Node& loss) {
    outputs = gradients(loss, inputs);
    outputs.insert(outputs.begin(), loss);
  }
  std::vector<Tensor> values() const {
    Random random(11);
    std::vector<Tensor> tensors;
    for (const Node& node : inputs) tensors.push_back(random.tensor(node.type(), -0.5, 0.5));
    return tensors;
  }
};

void build_perceptron(Net& net) {
  Node x = net.input({64, 48});
  for (int layer = 0; layer < 8; ++layer) x = dropout(tanh(matmul(x, net.input({48, 48}))), {.p = 0.2});
  net.differentiate(mean(x * x));
}

void build_convolutions(Net& net) {
  Node x = net.input({4, 8, 12, 12});
  for (int layer = 0; layer < 6; ++layer) {
    const Node convolved = conv2d(x, net.input({8, 8, 3, 3}), {.padding = {1, 1}});
    x = relu(batch_norm(convolved, net.input({8}), net.input({8})).y + x);
  }
  net.differentiate(mean(x));
}

void build_transformer(Net& net) {
  Node x = net.input({4, 16, 24});
  for (int layer = 0; layer < 4; ++layer) {
    const Node query = matmul(x, net.input({24, 24}));
    const Node attended = scaled_dot_product_attention(query, x, x, {.is_causal = true, .dropout = 0.1});
    const Node added = x + attended;
    x = added + matmul(gelu(matmul(added, net.input({24, 48}))), net.input({48, 24}));
  }
  net.differentiate(mean(x * x));
}

void build_recurrence(Net& net) {
  Node x = net.input({10, 8, 24});
  for (int layer = 0; layer < 3; ++layer) {
    const Node weights = net.input({24, 24});
    const ScanStep steps = scan({x}, {net.input({8, 24})}, [&](const auto& carries, const auto& xs) {
      const Node next = tanh(matmul(carries[0], weights) + xs[0]);
      return ScanStep{{next}, {dropout(next, {.p = 0.1})}};
    });
    x = steps.outputs[0];
  }
  net.differentiate(mean(x * x));
}

// A penalty of the gradient: the program has two backward passes.
void build_penalty(Net& net) {
  Node x = net.input({32, 24});
  for (int layer = 0; layer < 4; ++layer) x = tanh(matmul(x, net.input({24, 24})));
  const Node slope = gradients(mean(x * x), {net.inputs[0]})[0];
  net.differentiate(mean(x) + sum(slope * slope));
}

struct NamedNet {
  std::string name;
  void (*build)(Net& net);
};

const NamedNet nets[] = {{"perceptron", build_perceptron},
                         {"convolutions", build_convolutions},
                         {"transformer", build_transformer},
                         {"recurrence", build_recurrence},
                         {"penalty", build_penalty}};

std::vector<ProgramOutput> readable(const Net& net) {
  std::vector<ProgramOutput> outputs;
  for (const Node& node : net.outputs) outputs.push_back({.node = node});
  return outputs;
}

std::shared_ptr<const Program> compiled(const Net& net, std::optional<std::size_t> limit = {}) {
  return compile(net.graph, readable(net), test_backend(), {.memory_limit = limit});
}

std::size_t least_arena_of(const Net& net) {
  return least_arena(net.graph, readable(net), test_backend()).value();
}

std::vector<Tensor> results(const Net& net, std::optional<std::size_t> limit = {}) {
  return Runner(net.graph, net.outputs, test_backend(), {.memory_limit = limit})(net.values(),
                                                                                 {.step = 3, .seed = 5});
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

std::ptrdiff_t count_again(const Program& program) {
  return std::ranges::count_if(program.instructions, &Instruction::is_again);
}

// Returns the output of a program with the input "x" and the buffer "b": without a limit, and in the smallest
// arena.
std::vector<Tensor> with_and_without_limit(const Graph& graph, const Node& output, const TensorType& type) {
  const std::vector<ProgramOutput> outputs{{.node = output}};
  Backend& backend = test_backend();
  std::vector<Tensor> found;
  for (const auto& limit : {std::optional<std::size_t>(), least_arena(graph, outputs, backend)}) {
    const auto program = compile(graph, outputs, backend, {.memory_limit = limit});
    ParameterStore store({{"b", type, ParameterRole::buffer, Initialiser::zeros()}});
    store.place(program->placement, backend);
    Random random(3);
    store.write("b", random.tensor(type, 0.5, 1.5));
    VM vm(program, backend, {.store = &store});
    const std::vector<Feed> feeds{{"x", random.tensor(type, -1, 1)}};
    vm.run(feeds);
    found.push_back(vm.output(0));
  }
  return found;
}

}  // namespace

TEST_CASE("a program with a limit has the bits of the one without, in less memory") {
  for (const NamedNet& named : nets) {
    CAPTURE(named.name);
    Net net;
    named.build(net);
    const auto whole = compiled(net);
    const std::size_t least = least_arena_of(net);
    CHECK(least < whole->arena_bytes * 97 / 100);
    const std::vector<Tensor> expected = results(net);
    for (const std::size_t limit : {least, (least + whole->arena_bytes) / 2, whole->arena_bytes - 1}) {
      CAPTURE(limit);
      const auto program = compiled(net, limit);
      CHECK(program->arena_bytes <= limit);
      CHECK(program->estimates.unlimited_arena_bytes == whole->arena_bytes);
      CHECK(count_again(*program) > 0);
      CHECK(check_arena(*program) == "");
      CHECK(program->plan_hash() == whole->plan_hash());
      const std::vector<Tensor> found = results(net, limit);
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(found[i], expected[i]));
    }
  }
}

TEST_CASE("a program that fits is not changed") {
  Net net;
  build_perceptron(net);
  const auto whole = compiled(net);
  const auto program = compiled(net, whole->arena_bytes);
  CHECK(program->to_text() == whole->to_text());
  CHECK(program->estimates.seconds_again == 0);
}

TEST_CASE("more memory costs no more time") {
  Net net;
  build_convolutions(net);
  const std::size_t least = least_arena_of(net);
  const std::size_t most = compiled(net)->arena_bytes;
  double seconds = 1e9;
  for (int i = 0; i <= 4; ++i) {
    const auto program = compiled(net, least + (most - 1 - least) * static_cast<std::size_t>(i) / 4);
    CHECK(program->estimates.seconds_again <= seconds);
    CHECK(program->estimates.seconds_again < program->estimates.seconds);
    seconds = program->estimates.seconds_again;
  }
}

TEST_CASE("a value is computed again just before its first use in the backward pass") {
  Net net;
  build_perceptron(net);
  const auto program = compiled(net, least_arena_of(net));
  for (std::size_t index = 0; index + 1 < program->instructions.size(); ++index) {
    const Instruction& again = program->instructions[index];
    if (!again.is_again) continue;
    CHECK(again.name.ends_with(" again"));
    const auto next = std::ranges::find_if(program->instructions.begin() + static_cast<std::ptrdiff_t>(index),
                                           program->instructions.end(),
                                           [](const Instruction& other) { return !other.is_again; });
    const Value written = again.outputs[0]->value;
    bool is_read = false;
    for (auto reader = program->instructions.begin() + static_cast<std::ptrdiff_t>(index) + 1;
         reader <= next && !is_read; ++reader)
      is_read = std::ranges::any_of(reader->inputs,
                                    [&](const auto& slot) { return slot && slot->value == written; });
    CHECK(is_read);
  }
}

TEST_CASE("a buffer that the program changes is not read again after the change") {
  Graph graph;
  const TensorType type{DType::float32, {256}};
  const Node x = graph.input("x", type), buffer = graph.buffer("b", type);
  Node y = x * buffer;
  for (int i = 0; i < 4; ++i) y = tanh(y) * buffer;
  graph.update(buffer, y);
  const Node grad = gradients(sum(y * y), {x})[0];
  const std::vector<Tensor> found = with_and_without_limit(graph, grad, type);
  CHECK(same_bits(found[0], found[1]));
}

TEST_CASE("a value that was computed from a buffer is not computed again after the buffer was changed") {
  Graph graph;
  const TensorType type{DType::float32, {64, 64}};
  const Node x = graph.input("x", type), buffer = graph.buffer("b", type);
  const Node weights = graph.constant(Random(5).tensor(type, -0.2, 0.2));
  Node y = tanh(x + buffer);
  graph.update(buffer, y * 0.5);
  for (int i = 0; i < 6; ++i) y = tanh(matmul(y, weights));
  const Node grad = gradients(sum(y * y), {x})[0];
  const std::vector<Tensor> found = with_and_without_limit(graph, grad, type);
  CHECK(same_bits(found[0], found[1]));
}

TEST_CASE("the smallest arena is not larger than the one without a limit") {
  for (int depth = 1; depth < 5; ++depth) {
    CAPTURE(depth);
    Net net;
    Node x = net.input({16, 24});
    for (int layer = 0; layer < depth; ++layer) x = tanh(matmul(x, net.input({24, 24})));
    net.differentiate(mean(x * x));
    CHECK(least_arena_of(net) <= compiled(net)->arena_bytes);
  }
}

TEST_CASE("what cannot fit is refused with the smallest arena that was found") {
  Net net;
  build_perceptron(net);
  const std::size_t least = least_arena_of(net);
  CHECK(
      error_text<UserError>([&] { compiled(net, least - 1); }) ==
      fmt::format("the intermediate values of the program need {} bytes or more, also if values are computed "
                  "again, and CompileOptions::memory_limit is {} bytes; raise it, or use a smaller batch",
                  least, least - 1));
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {1024}});
  const std::vector<ProgramOutput> outputs{{.node = sum(exp(x) * x)}};
  CHECK_THROWS_AS(compile(graph, outputs, test_backend(), {.memory_limit = 64}), MemoryLimitError);
  CHECK(error_text<UserError>(
            [&] { compile(graph, outputs, test_backend(), {.optimise = false, .memory_limit = 1 << 20}); }) ==
        "CompileOptions::memory_limit needs a program that is optimised, and keeps only its outputs; leave "
        "out the limit, or optimise = false and keep_all");
}

}  // namespace plexaura::testing::recompute_test
