#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/graph/uses.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/scan/scan_op.h"
#include "testing/check_gradients.h"
#include "testing/run.h"
#include "tests/scan/unrolled.h"
#include "tests/support/backend.h"
#include "tests/support/pattern.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing::scan_gradient_test {

namespace {

// A function of some inputs whose body captures inputs.
struct Function {
  std::string name;
  std::vector<Tensor> inputs;
  std::function<ScanStep(bool loop, std::span<const Node> inputs, ScanOptions options)> build;
};

ScanStep loop_or_not(bool loop, const std::vector<Node>& xs, const std::vector<Node>& carries,
                     const ScanBody& body, const ScanOptions& options) {
  return loop ? scan(xs, carries, body, options) : unrolled(xs, carries, body, options);
}

Function recurrent_net() {
  return {"recurrent net",
          {pattern({4, 2, 3}), pattern({2, 5}, 5), pattern({5, 5}, 3), pattern({3, 5}, 9), pattern({5}, 4)},
          [](bool loop, std::span<const Node> in, const ScanOptions& options) {
            return loop_or_not(
                loop, {in[0]}, {in[1]},
                [&](const std::vector<Node>& carries, const std::vector<Node>& xs) {
                  const Node next = tanh(matmul(xs[0], in[3]) + matmul(carries[0], in[2]) * 0.3 + in[4]);
                  return ScanStep{{next}, {square(next), sum(next * carries[0])}};
                },
                options);
          }};
}

Function two_carries() {
  return {"two carries of other shapes",
          {pattern({3, 4}), pattern({4}, 5), pattern({}, 3), pattern({4}, 9)},
          [](bool loop, std::span<const Node> in, const ScanOptions& options) {
            return loop_or_not(
                loop, {in[0]}, {in[1], in[2]},
                [&](const std::vector<Node>& carries, const std::vector<Node>& xs) {
                  const Node gate = sigmoid(xs[0] + carries[1] * in[3]);
                  return ScanStep{{carries[0] * gate, sum(carries[0] * xs[0]) * 0.2}, {gate * carries[1]}};
                },
                options);
          }};
}

Function without_xs() {
  return {
      "no xs", {pattern({3}), pattern({3}, 5)}, [](bool loop, std::span<const Node> in, ScanOptions options) {
        options.steps = 3;
        return loop_or_not(
            loop, {}, {in[0]},
            [&](const std::vector<Node>& carries, const std::vector<Node>&) {
              return ScanStep{{tanh(carries[0] * in[1])}, {}};
            },
            options);
      }};
}

// Softmax and moments save outputs for their own gradients.
Function with_saved_outputs() {
  return {"moments and cross entropy",
          {pattern({3, 4, 5}), pattern({4, 5}, 5)},
          [](bool loop, std::span<const Node> in, const ScanOptions& options) {
            return loop_or_not(
                loop, {in[0]}, {in[1]},
                [&](const std::vector<Node>& carries, const std::vector<Node>& xs) {
                  const Node labels = xs[0].graph().constant(Tensor::of<std::int64_t>({4}, {0, 3, 1, 2}));
                  const Node h = tanh(carries[0] + xs[0]);
                  return ScanStep{{h - mean(h, {.axes = {0}})}, {softmax_cross_entropy(h, labels)}};
                },
                options);
          }};
}

Function scan_of_scans() {
  return {"a scan in a scan",
          {pattern({2, 3, 4}), pattern({4}, 5), pattern({4}, 3)},
          [](bool loop, std::span<const Node> in, const ScanOptions& options) {
            const ScanBody inner = [&](const std::vector<Node>& carries, const std::vector<Node>& xs) {
              return ScanStep{{tanh(carries[0] * in[2] + xs[0])}, {sum(carries[0])}};
            };
            return loop_or_not(
                loop, {in[0]}, {in[1]},
                [&](const std::vector<Node>& carries, const std::vector<Node>& xs) {
                  const ScanStep row = loop_or_not(loop, {xs[0]}, {carries[0]}, inner, {});
                  return ScanStep{{row.carries[0] * in[1]}, {row.outputs[0]}};
                },
                options);
          }};
}

// Products of values of the body and of xs with matrices on either side, which are transposed or not. One matrix is used
// twice, and one is an operand of a sum.
Function of_products() {
  return {
      "products of matrices",
      {pattern({3, 2, 4}), pattern({2, 4}, 5), pattern({4, 4}, 3), pattern({4, 4}, 9), pattern({4, 4}, 5),
       pattern({2, 2}, 3), pattern({2, 2}, 7), pattern({2, 3}, 5), pattern({3, 2}, 9), pattern({2, 4}, 3)},
      [](bool loop, std::span<const Node> in, const ScanOptions& options) {
        return loop_or_not(
            loop, {in[0]}, {in[1]},
            [&](const std::vector<Node>& carries, const std::vector<Node>& xs) {
              const Node inner = tanh(matmul(xs[0], in[2], {.transpose_b = true}) * 0.5);
              const Node right = matmul(inner, in[3]) + matmul(carries[0], in[4]) * 0.2;
              const Node left = matmul(in[5], carries[0]) + matmul(in[6], xs[0], {.transpose_a = true});
              const Node next = right + left * 0.1;
              return ScanStep{{tanh(next)},
                              {matmul(xs[0], in[4]) * next, matmul(inner, in[7], {.transpose_a = true}),
                               matmul(in[8], inner), matmul(in[9] + xs[0], in[2])}};
            },
            options);
      }};
}

std::vector<Function> all_functions() {
  return {recurrent_net(), two_carries(), without_xs(), with_saved_outputs(), scan_of_scans(), of_products()};
}

std::vector<ScanOptions> all_options() {
  return {{}, {.reverse = true}, {.recompute = true}, {.reverse = true, .recompute = true}};
}

std::vector<Node> all_nodes(const ScanStep& step) {
  std::vector<Node> nodes = step.carries;
  nodes.insert(nodes.end(), step.outputs.begin(), step.outputs.end());
  return nodes;
}

// A scalar that depends on each element of the nodes in its own way.
Node mixed(const std::vector<Node>& nodes) {
  Node total = nodes[0].graph().constant(Tensor::scalar(0.0));
  for (const Node& node : nodes) {
    const Node weights = node.graph().constant(pattern(node.shape(), 5, 1, 13));
    total = total + sum(node * weights + square(node) * 0.5);
  }
  return total;
}

// Derivatives of the orders 1 to `orders` with respect to all inputs.
std::vector<Tensor> derivatives(const Function& function, bool loop, const ScanOptions& options, int orders) {
  Graph graph;
  std::vector<Node> inputs;
  for (const Tensor& value : function.inputs)
    inputs.push_back(graph.input(std::to_string(inputs.size()), value.type()));
  std::vector<Node> results;
  Node value = mixed(all_nodes(function.build(loop, inputs, options)));
  for (int order = 1; order <= orders; ++order) {
    const std::vector<Node> found = gradients(value, inputs);
    results.insert(results.end(), found.begin(), found.end());
    value = mixed(found);
  }
  return Runner(graph, results, test_backend())(function.inputs, {.step = 3, .seed = 5});
}

void check_same(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    REQUIRE(actual[i].type() == expected[i].type());
    check_close(actual[i], expected[i].to_doubles(), tolerance);
  }
}

}  // namespace

TEST_CASE("derivatives of a scan of three orders are those of its steps one after the other") {
  for (const Function& function : all_functions())
    for (const ScanOptions& options : all_options()) {
      CAPTURE(function.name);
      CAPTURE(options.reverse);
      CAPTURE(options.recompute);
      check_same(derivatives(function, true, options, 3), derivatives(function, false, options, 3), 1e-9);
    }
}

// Takes far longer than the case before, which compares the same derivatives on every backend and under sanitizers.
TEST_CASE("derivatives of a scan are those of differences" * doctest::skip(sanitized)) {
  if (!is_default_backend()) return;
  for (const Function& function : all_functions())
    for (const bool recompute : {false, true}) {
      CAPTURE(function.name);
      CAPTURE(recompute);
      const GradientReport report = check_gradients(
          [&](Graph&, std::span<const Node> inputs) {
            return all_nodes(function.build(true, inputs, {.recompute = recompute}));
          },
          function.inputs, test_backend());
      CHECK_MESSAGE(report.passed, to_string(report));
    }
}

TEST_CASE("the gradient of dropout in a scan has the mask of its step, also if it is computed again") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {6, 8}});
  std::vector<Node> results;
  for (const bool recompute : {false, true})
    for (const bool reverse : {false, true}) {
      const Node y = scan({x}, {},
                          [](const std::vector<Node>&, const std::vector<Node>& xs) {
                            return ScanStep{{}, {square(dropout(xs[0], {.p = 0.5}))}};
                          },
                          {.reverse = reverse, .recompute = recompute})
                         .outputs[0];
      results.insert(results.end(), {y, gradients(sum(y), {x})[0]});
    }
  Tensor ones(TensorType{DType::float64, {6, 8}});
  for (double& value : ones.as<double>()) value = 1;
  const auto values = Runner(graph, results, test_backend())({ones}, {.step = 3, .seed = 5});
  for (std::size_t i = 0; i < values.size(); i += 2) {
    std::vector<double> twice =
        values[i].to_doubles();  // x is 1, so that the derivative of a square is twice the square
    for (double& value : twice) value *= 2;
    check_close(values[i + 1], twice);
  }
}

TEST_CASE("a value that the body does not use has no gradient, and integers have none") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {3, 2}});
  const Node ids = graph.input("ids", {DType::int64, {3}});
  const Node unused = graph.input("unused", {DType::float64, {3, 2}});
  const Node count = graph.constant(Tensor::scalar<std::int64_t>(0));
  const ScanStep loop = scan({x, ids, unused}, {count}, [](const auto& carries, const auto& xs) {
    return ScanStep{{carries[0] + xs[1]}, {xs[0] * cast(xs[1], DType::float64), carries[0]}};
  });
  const Node loss = sum(loop.outputs[0]);
  const std::vector<Node> wrt{x, unused};
  const std::vector<Node> found = gradients_or_empty(loss, wrt);
  CHECK(same_value(found[1], Node()));
  const auto values = Runner(graph, {found[0], loop.carries[0]}, test_backend())(
      {pattern({3, 2}), Tensor::of<std::int64_t>({3}, {2, 3, 4}), pattern({3, 2})});
  check_close(values[0], {2, 2, 3, 3, 4, 4});
  check_close(values[1], {9});
}

TEST_CASE("the gradient of a scan of no steps is that of its carries") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {0, 2}});
  const Node h = graph.input("h", {DType::float64, {2}});
  const Node w = graph.input("w", {DType::float64, {2}});
  const ScanStep loop = scan({x}, {h}, [&](const auto& carries, const auto& xs) {
    return ScanStep{{carries[0] * w + xs[0]}, {}};
  });
  const auto values = Runner(graph, gradients(sum(square(loop.carries[0])), {h, w, x}), test_backend())(
      {Tensor(TensorType{DType::float64, {0, 2}}), Tensor::of<double>({2}, {1, 2}),
       Tensor::of<double>({2}, {3, 4})});
  check_close(values[0], {2, 4});
  check_close(values[1], {0, 0});
  CHECK(values[2].shape() == Shape{0, 2});
}

TEST_CASE("a gradient reads values that were kept, or computes them again") {
  const auto gradient_of = [](bool recompute) {
    Graph graph;
    const Node x = graph.input("x", {DType::float64, {3, 8}});
    const ScanStep loop = scan({x}, {},
                               [](const auto&, const auto& xs) {
                                 return ScanStep{{}, {tanh(exp(xs[0]))}};
                               },
                               {.recompute = recompute});
    const Node grad = gradients(sum(loop.outputs[0]), {x})[0];
    const Scan* scan = as_scan(*graph.record(grad.id()).op);
    REQUIRE(scan != nullptr);
    std::size_t exponentials = 0;
    const Graph& body = scan->body().graph();
    for (NodeId id = 0; id < body.size(); ++id) exponentials += body.record(id).op->name() == "exp" ? 1 : 0;
    return exponentials;
  };
  CHECK(gradient_of(false) == 0);
  CHECK(gradient_of(true) == 1);
}

TEST_CASE("the gradient of a matrix is one product over all steps, unless values are computed again") {
  // Returns the name of the op that computes the gradient of a matrix w [4, 4], if the body multiplies h [4, 4] and w.
  using Multiply = std::function<Node(const Node& h, const Node& w)>;
  const auto op_of_gradient = [](const Multiply& multiply, bool recompute) {
    Graph graph;
    const Node x = graph.input("x", {DType::float64, {3, 4, 4}});
    const Node w = graph.input("w", {DType::float64, {4, 4}});
    const Node h = graph.input("h", {DType::float64, {4, 4}});
    const ScanStep loop = scan({x}, {h},
                               [&](const auto& carries, const auto& xs) {
                                 const Node next = tanh(multiply(carries[0], w) + xs[0]);
                                 return ScanStep{{next}, {next}};
                               },
                               {.recompute = recompute});
    const Node grad = gradients(sum(loop.outputs[0]), {w})[0];
    return std::string(graph.record(grad.id()).op->name());
  };
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      const MatMulOptions form{transpose_a, transpose_b};
      CAPTURE(transpose_a);
      CAPTURE(transpose_b);
      const Multiply from_right = [&](const Node& h, const Node& w) { return matmul(h, w, form); };
      const Multiply from_left = [&](const Node& h, const Node& w) { return matmul(w, h, form); };
      CHECK(op_of_gradient(from_right, false) == "matmul");
      CHECK(op_of_gradient(from_left, false) == "matmul");
      CHECK(op_of_gradient(from_right, true) == "scan");
    }
  const auto constant_factor = [](const Node& h, const Node& w) {
    return matmul(h + w, w.graph().constant(pattern({4, 4})));
  };
  CHECK(op_of_gradient(constant_factor, false) == "scan");
}

TEST_CASE("a loop whose gradient is only a product has no loop in its gradient") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {3, 2, 4}});
  const Node w = graph.input("w", {DType::float64, {4, 5}});
  const ScanStep loop = scan({x}, {}, [&](const auto&, const auto& xs) {
    return ScanStep{{}, {matmul(xs[0], w)}};
  });
  const Node grad = gradients(sum(square(loop.outputs[0])), {w})[0];
  const std::vector<bool> needed = nodes_needed(graph, std::vector{grad.value()});
  int loops = 0;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (needed[id] && as_scan(*graph.record(id).op) != nullptr) ++loops;
  CHECK(loops == 1);  // that of the forward pass
  const Tensor values = pattern({3, 2, 4});
  const Tensor weights = pattern({4, 5}, 3);
  const Tensor found = Runner(graph, {grad}, test_backend())({values, weights})[0];
  Graph flat;
  const Node weight = flat.input("w", weights.type());
  const Node expected = gradients(sum(square(matmul(flat.constant(values), weight))), {weight})[0];
  check_close(found, Runner(flat, {expected}, test_backend())({weights})[0].to_doubles());
}

}  // namespace plexaura::testing::scan_gradient_test
