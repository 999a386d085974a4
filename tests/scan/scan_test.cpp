#include "core/scan/scan.h"

#include <algorithm>
#include <doctest/doctest.h>

#include "core/compile/compile.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "testing/values.h"
#include "tests/scan/unrolled.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/pattern.h"

namespace plexaura::testing::scan_test {

namespace {

TensorType numbers(Shape shape) { return {DType::float64, std::move(shape)}; }

// The operands of a small recurrent net: x [T, 3, 4], h [3, n], w [n, n], u [4, n].
struct Net {
  Graph graph;
  Node x, h, w, u;
  std::vector<Tensor> values;

  Net(std::int64_t steps, std::int64_t width)
      : x(graph.input("x", numbers({steps, 3, 4}))),
        h(graph.input("h", numbers({3, width}))),
        w(graph.input("w", numbers({width, width}))),
        u(graph.input("u", numbers({4, width}))) {
    for (const Node& node : {x, h, w, u})
      values.push_back(pattern(node.shape(), 7 + static_cast<std::int64_t>(values.size())));
  }

  ScanBody body() const {
    return [w = w, u = u](const std::vector<Node>& carries, const std::vector<Node>& xs) {
      const Node next = tanh(matmul(xs[0], u) + matmul(carries[0], w) * 0.5);
      return ScanStep{{next}, {next * xs[0].graph().constant(Tensor::scalar(2.0)), sum(next)}};
    };
  }
};

std::vector<Node> all_nodes(const ScanStep& step) {
  std::vector<Node> nodes = step.carries;
  nodes.insert(nodes.end(), step.outputs.begin(), step.outputs.end());
  return nodes;
}

// Compiles and runs; all inputs of the graph are fed.
std::vector<Tensor> run(const Graph& graph, const std::vector<Node>& outputs,
                        const std::vector<Tensor>& inputs, const StepBlock& block = {}) {
  return Runner(graph, outputs, test_backend())(inputs, block);
}

void check_same(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    REQUIRE(actual[i].type() == expected[i].type());
    check_close(actual[i], expected[i].to_doubles());
  }
}

std::string refusal(const std::vector<Node>& xs, const std::vector<Node>& carries, const ScanBody& body,
                    const ScanOptions& options = {}) {
  return user_error([&] { scan(xs, carries, body, options); });
}

void check_says(const std::string& text, std::string_view words) {
  CAPTURE(text);
  CHECK(text.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("a scan computes what its steps compute one after the other") {
  for (const std::int64_t width : {5, 8, 16})  // rows of 120 bytes, and of whole granules
    for (const std::int64_t steps : {1, 2, 5})
      for (const bool reverse : {false, true}) {
        CAPTURE(width);
        CAPTURE(steps);
        CAPTURE(reverse);
        Net net(steps, width);
        const ScanOptions options{.reverse = reverse};
        const ScanStep loop = scan({net.x}, {net.h}, net.body(), options);
        const ScanStep steps_in_a_row = unrolled({net.x}, {net.h}, net.body(), options);
        check_same(run(net.graph, all_nodes(loop), net.values),
                   run(net.graph, all_nodes(steps_in_a_row), net.values));
      }
}

TEST_CASE("a scan of no steps returns the carries that it was passed") {
  Net net(0, 8);
  const ScanStep loop = scan({net.x}, {net.h}, net.body());
  const auto results = run(net.graph, all_nodes(loop), net.values);
  check_close(results[0], net.values[1].to_doubles());
  CHECK(results[1].shape() == Shape{0, 3, 8});
  CHECK(results[2].shape() == Shape{0});
}

TEST_CASE("a scan without xs has as many steps as its option says") {
  Graph graph;
  const Node x = graph.input("x", numbers({4}));
  const ScanStep loop = scan({}, {x},
                             [](const auto& carries, const auto&) {
                               return ScanStep{{carries[0] * 2}, {carries[0]}};
                             },
                             {.steps = 3});
  const auto results = run(graph, all_nodes(loop), {Tensor::of<double>({4}, {1, 2, 3, 4})});
  check_close(results[0], {8, 16, 24, 32});
  check_close(results[1], {1, 2, 3, 4, 2, 4, 6, 8, 4, 8, 12, 16});
}

TEST_CASE("carries may change their places, and outputs may be the same in each step") {
  Graph graph;
  const Node a = graph.input("a", numbers({2}));
  const Node b = graph.input("b", numbers({2}));
  const ScanStep loop = scan({}, {a, b},
                             [&](const auto& carries, const auto&) {
                               return ScanStep{{carries[1], carries[0]}, {a + b, carries[0], carries[0]}};
                             },
                             {.steps = 3});
  const auto results =
      run(graph, all_nodes(loop), {Tensor::of<double>({2}, {1, 2}), Tensor::of<double>({2}, {3, 4})});
  check_close(results[0], {3, 4});
  check_close(results[1], {1, 2});
  check_close(results[2], {4, 6, 4, 6, 4, 6});
  check_close(results[3], {1, 2, 3, 4, 1, 2});
  check_close(results[4], {1, 2, 3, 4, 1, 2});
}

TEST_CASE("a scan may be in the body of a scan") {
  Graph graph;
  const Node x = graph.input("x", numbers({3, 4, 8}));
  const Node h = graph.input("h", numbers({8}));
  const ScanBody inner = [&](const std::vector<Node>& carries, const std::vector<Node>& xs) {
    return ScanStep{{tanh(carries[0] + xs[0] * h)}, {carries[0] * 2}};
  };
  const auto outer = [&](bool loops) {
    return [&, loops](const std::vector<Node>& carries, const std::vector<Node>& xs) {
      const ScanStep rows =
          loops ? scan({xs[0]}, {carries[0]}, inner) : unrolled({xs[0]}, {carries[0]}, inner);
      return ScanStep{{rows.carries[0] + h}, {rows.outputs[0]}};
    };
  };
  const ScanStep loop = scan({x}, {h}, outer(true));
  const ScanStep steps_in_a_row = unrolled({x}, {h}, outer(false));
  const std::vector<Tensor> values{pattern({3, 4, 8}), pattern({8}, 5)};
  check_same(run(graph, all_nodes(loop), values), run(graph, all_nodes(steps_in_a_row), values));
}

TEST_CASE("long scans copy the elements of a step instead of binding each") {
  Graph graph;
  const std::int64_t steps = 5000;
  const Node x = graph.input("x", numbers({steps, 8}));
  const Node h = graph.input("h", numbers({8}));
  const ScanStep loop = scan({x}, {h}, [](const auto& carries, const auto& xs) {
    return ScanStep{{carries[0] + xs[0]}, {carries[0] + xs[0]}};
  });
  const auto results = run(graph, all_nodes(loop), {pattern({steps, 8}), pattern({8})});
  const std::vector<double> sums = results[1].to_doubles();
  CHECK(std::vector(sums.end() - 8, sums.end()) == results[0].to_doubles());
}

TEST_CASE("the size of a program does not depend on the number of steps") {
  const auto nodes = [](std::int64_t steps) {
    Net net(steps, 8);
    const std::vector<ProgramOutput> outputs{{.node = scan({net.x}, {net.h}, net.body()).carries[0]}};
    const auto program = compile(net.graph, outputs, test_backend());
    return program->instructions.size() + program->graph->size();
  };
  CHECK(nodes(3) == nodes(3000));
}

TEST_CASE("equal scans are merged, and scans with other bodies are not") {
  Net net(3, 8);
  const ScanBody other = [](const std::vector<Node>& carries, const std::vector<Node>& xs) {
    return ScanStep{{carries[0] + sum(xs[0])}, {carries[0]}};
  };
  const Node first = scan({net.x}, {net.h}, net.body()).carries[0];
  const Node same = scan({net.x}, {net.h}, net.body()).carries[0];
  const Node different = scan({net.x}, {net.h}, other).carries[0];
  const std::vector<ProgramOutput> outputs{{.node = first}, {.node = same}, {.node = different}};
  const auto program = compile(net.graph, outputs, test_backend());
  CHECK(std::ranges::count_if(program->instructions, [](const Instruction& instruction) {
          return std::holds_alternative<LoopWork>(instruction.work);
        }) == 2);
}

TEST_CASE("a random op in a body draws new numbers in each step, unless it is told to draw the same") {
  for (const bool same_draws : {false, true}) {
    Graph graph;
    const Node x = graph.input("x", numbers({4, 8}));
    const ScanStep loop = scan(
        {x}, {},
        [](const auto&, const auto& xs) {
          return ScanStep{{}, {dropout(xs[0] * 0 + 1, {.p = 0.5}), uniform(xs[0].graph(), xs[0].type())}};
        },
        {.same_draws = same_draws});
    const auto results = run(graph, loop.outputs, {pattern({4, 8})}, {.step = 3, .seed = 5});
    for (const Tensor& result : results) {
      const std::vector<double> all = result.to_doubles();
      for (std::ptrdiff_t step = 1; step < 4; ++step)
        CHECK(std::equal(all.begin(), all.begin() + 8, all.begin() + 8 * step) == same_draws);
    }
  }
}

TEST_CASE("a scan refuses operands and bodies that break its rules") {
  Net net(3, 8);
  Graph& graph = net.graph;
  const ScanBody body = net.body();
  check_says(refusal({}, {}, body), "there are neither xs nor carries");
  check_says(refusal({}, {net.h}, body), "set the option steps");
  check_says(refusal({net.x}, {net.h}, body, {.steps = 4}), "is float64[3,3,4], and there are 4 steps");
  check_says(refusal({}, {net.h}, body, {.steps = -1}), "must not be negative");
  check_says(refusal({sum(net.h)}, {}, body), "is a scalar");
  check_says(refusal({net.x}, {net.h}, [](const auto&, const auto&) { return ScanStep{}; }),
             "returns 0 carries and gets 1");
  check_says(refusal({net.x}, {net.h},
                     [](const auto& c, const auto&) {
                       return ScanStep{{cast(c[0], DType::float32)}, {}};
                     }),
             "carry 0 is float64[3,8] before a step and float32[3,8] after it");
  const Node mean = graph.buffer("mean", numbers({3, 8}));
  check_says(refusal({net.x}, {net.h},
                     [&](const auto& c, const auto&) {
                       graph.update(mean, c[0]);
                       return ScanStep{{c[0]}, {}};
                     }),
             "return the value from the body and update the buffer after the scan");
  Graph other;
  const Node foreign = other.input("x", numbers({3}));
  check_says(refusal({net.x, foreign}, {net.h}, body), "belong to different graphs");
}

TEST_CASE("a value of a body that is used outside of its scan is refused") {
  Net net(3, 8);
  Node leaked;
  scan({net.x}, {net.h}, [&](const std::vector<Node>& carries, const std::vector<Node>&) {
    leaked = carries[0] * 2;
    return ScanStep{{leaked}, {}};
  });
  const std::vector<ProgramOutput> outputs{{.node = leaked}};
  const std::string text = user_error([&] { compile(net.graph, outputs, test_backend()); });
  check_says(text, "scan_test.cpp");
  check_says(text, "outside of it; return the value from the body");
}

}  // namespace plexaura::testing::scan_test
