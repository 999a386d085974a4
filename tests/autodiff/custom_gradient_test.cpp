#include "core/autodiff/custom_gradient.h"

#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/scan/scan.h"
#include "core/vm/function.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::custom_gradient_test {

namespace {

using Request = CustomGradientRequest;

Node vector_input(Graph& graph, const char* name) { return graph.input(name, {DType::float64, {2}}); }

Tensor vector(double a, double b) { return Tensor::of({2}, std::vector<double>{a, b}); }

Node rounded(const std::vector<Node>& inputs) { return round(inputs[0]); }

// Rounds, with the gradient of the identity.
Node straight_through(const Node& x) {
  return custom_gradient({x}, rounded, [](const Request& request) { return std::vector{request.cotangent}; });
}

}  // namespace

TEST_CASE("a region has the values of its ops and the gradient of its backward builder") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node y = straight_through(x * 3);
  Function f(graph, {x}, {y, gradients(sum(square(y)), {x})[0]}, test_backend());
  const std::vector<Tensor> found = f(vector(0.4, -1.5));
  CHECK(found[0] == vector(1, -4));
  CHECK(found[1] == vector(2 * 1 * 3, 2 * -4 * 3));
}

TEST_CASE("the backward builder gets inputs and output, and is differentiated again") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node z = vector_input(graph, "z");
  // x z, with the gradient 5 x y for x, which is 5 x^2 z, and none for z
  const Node y = custom_gradient(
      {x, z}, [](const auto& in) { return in[0] * in[1]; },
      [](const Request& request) {
        return std::vector{request.cotangent * 5 * request.inputs[0] * request.output, Node()};
      });
  const Node first = gradients(sum(y), {x})[0];
  CHECK(gradients_or_empty(sum(y), std::vector{z})[0].is_empty());
  // The output in the first gradient is this region again: d(5 x y)/dx = 5 y + 5 x (5 x y)
  const Node second = gradients(sum(first), {x})[0];
  Function f(graph, {x, z}, {first, second}, test_backend());
  const std::vector<Tensor> found = f(vector(2, 3), vector(0.5, 1));
  CHECK(found[0] == vector(5 * 4 * 0.5, 5 * 9));
  CHECK(found[1] == vector(5 * 1 + 25 * 4 * 1, 5 * 3 + 25 * 9 * 3));
}

TEST_CASE("a region takes no instruction of its own") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {1, 16, 6, 6}});
  const Node w = graph.input("w", {DType::float32, {16, 16, 3, 3}});
  const auto convolved = [](const std::vector<Node>& inputs) { return conv2d(inputs[0], inputs[1]); };
  const auto none = [](const Request&) { return std::vector<Node>(2); };
  const Node plain = relu(convolved({x, w}));
  const Node own = relu(custom_gradient({x, w}, convolved, none));
  const auto instructions = [&](const Node& node) {
    return compile(graph, std::vector{ProgramOutput{node}}, test_backend(), {.optimise = false})
        ->instructions.size();
  };
  CHECK(instructions(own) == instructions(plain));
}

TEST_CASE("a region works in the body of a loop") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node y = scan({}, {x},
                      [](const auto& carry, const auto&) {
                        return ScanStep{{straight_through(carry[0] * 3)}, {}};
                      },
                      {.steps = 2})
                     .carries[0];
  Function f(graph, {x}, {y, gradients(sum(y), {x})[0]}, test_backend());
  const std::vector<Tensor> found = f(vector(0.5, 1.4));
  CHECK(found[0] == vector(6, 12));
  CHECK(found[1] == vector(9, 9));
}

TEST_CASE("what a backward builder returns is checked, and the message names the region's line") {
  Graph graph;
  Graph other;
  const Node x = vector_input(graph, "x");
  const Node y = vector_input(other, "y");
  const auto error = [&](const std::vector<Node>& grads) {
    const Node region = custom_gradient({x}, rounded, [=](const Request&) { return grads; });
    return user_error([&] { gradients(sum(region), {x}); });
  };
  CHECK(error({}).find("returned 0 gradients for 1 inputs; return one for each") != std::string::npos);
  CHECK(error({}).find("custom_gradient_test.cpp") != std::string::npos);
  CHECK(error({y}).find("returned a node of another graph") != std::string::npos);
  const auto nothing = [](const Request&) { return std::vector<Node>(); };
  CHECK(user_error([&] { custom_gradient({}, rounded, nothing); }).find("there is no input") !=
        std::string::npos);
  CHECK(user_error([&] {
          custom_gradient({x, y}, rounded, nothing);
        }).find("an input belongs to another graph") != std::string::npos);
}

}  // namespace plexaura::testing::custom_gradient_test
