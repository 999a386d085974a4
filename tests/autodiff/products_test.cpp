#include "core/autodiff/products.h"

#include <cmath>
#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/trigonometry.h"
#include "core/ops/unary.h"
#include "core/scan/jacobian.h"
#include "core/scan/scan.h"
#include "core/vm/function.h"
#include "testing/check_gradients.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/vectors.h"

namespace plexaura::testing::products_test {

namespace {

const std::vector<double> at{0.3, -0.7, 1.1};
const std::vector<double> along{0.5, 2, -1.5};

}  // namespace

TEST_CASE("a Jacobian-vector product is the derivative along the tangent") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node t = vector_input(graph, "t");
  const Node outputs[] = {sin(x), sum(square(x)), x * 2};
  const std::vector<Node> products = jvp(outputs, {&x, 1}, {&t, 1});
  REQUIRE(products.size() == 3);
  Function f(graph, {x, t}, products, test_backend());
  const std::vector<Tensor> found = f(vector(at), vector(along));
  std::vector<double> cosines;
  std::vector<double> doubles;
  double total = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    cosines.push_back(std::cos(at[i]) * along[i]);
    doubles.push_back(2 * along[i]);
    total += 2 * at[i] * along[i];
  }
  check_same_numbers(found[0], vector(cosines));
  check_same_numbers(found[1], Tensor::scalar(total));
  check_same_numbers(found[2], vector(doubles));
}

TEST_CASE("products take lists in braces") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node t = vector_input(graph, "t");
  const Node y = square(x);
  const std::vector<Node> products{jvp({y}, {x}, {t})[0], vjp({y}, {t}, {x})[0],
                                   hvp(sum(y * x), {x}, {t})[0]};
  Function f(graph, {x, t}, products, test_backend());
  const std::vector<Tensor> found = f(vector(at), vector(along));
  std::vector<double> of_square;
  std::vector<double> of_cube;
  for (std::size_t i = 0; i < at.size(); ++i) {
    of_square.push_back(2 * at[i] * along[i]);
    of_cube.push_back(6 * at[i] * along[i]);
  }
  check_same_numbers(found[0], vector(of_square));
  check_same_numbers(found[1], vector(of_square));
  check_same_numbers(found[2], vector(of_cube));
}

TEST_CASE("the tangents of several entries are added up, and an empty one is zero") {
  Graph graph;
  const Node wrt[] = {vector_input(graph, "x"), vector_input(graph, "y"), vector_input(graph, "z")};
  const Node t = vector_input(graph, "t");
  const Node tangents[] = {t, t * 3, Node()};
  const Node product = wrt[0] * wrt[1] * wrt[2];
  Function f(graph, {wrt[0], wrt[1], wrt[2], t}, jvp({&product, 1}, wrt, tangents), test_backend());
  std::vector<double> expected;
  for (std::size_t i = 0; i < at.size(); ++i) expected.push_back((along[i] * 5 + at[i] * along[i] * 3) * 7);
  check_same_numbers(f(vector(at), vector({5, 5, 5}), vector({7, 7, 7}), vector(along))[0], vector(expected));
}

TEST_CASE("a derivative that is zero is an empty node") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node t = vector_input(graph, "t");
  const Node outputs[] = {square(t), stop_gradient(x), x * t};
  const std::vector<Node> products = jvp(outputs, {&x, 1}, {&t, 1});
  CHECK(products[0].is_empty());
  CHECK(products[1].is_empty());
  CHECK_FALSE(products[2].is_empty());
  const Node none;
  CHECK(jvp({&x, 1}, {&x, 1}, {&none, 1})[0].is_empty());
  CHECK(hvp(sum(x * 3), {&x, 1}, {&t, 1})[0].is_empty());
  CHECK(hvp(sum(t), {&x, 1}, {&t, 1})[0].is_empty());
}

TEST_CASE("a Hessian-vector product, of the loss of a matrix") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node v = vector_input(graph, "v");
  // sum(x)^3: each entry of the Hessian is 6 sum(x)
  Function f(graph, {x, v}, hvp(cube(sum(x)), {&x, 1}, {&v, 1}), test_backend());
  const double each = 6 * (0.3 - 0.7 + 1.1) * (0.5 + 2 - 1.5);
  check_same_numbers(f(vector(at), vector(along))[0], vector({each, each, each}));
}

// The products and the Jacobian of a function with a loop and moments are differentiated again, by differences.
TEST_CASE("the derivatives of products and Jacobians are right") {
  const auto build = [](Graph&, std::span<const Node> inputs) {
    const Node normal = batch_norm(inputs[0], inputs[1], inputs[1]).y;
    const Node y = scan({normal}, {inputs[1]}, [](const auto& carry, const auto& row) {
                     return ScanStep{{tanh(carry[0] * row[0])}, {}};
                   }).carries[0];
    const Node loss = sum(square(y));
    return std::vector<Node>{jvp({&y, 1}, inputs.first(1), inputs.subspan(2, 1))[0],
                             hvp(loss, inputs.first(1), inputs.subspan(2, 1))[0], jacobian(y, inputs[1])};
  };
  Random random(3);
  const TensorType matrix{DType::float64, {3, 2}};
  const GradientReport report =
      check_gradients(build,
                      {random.tensor(matrix, -1, 1), random.tensor({DType::float64, {2}}, -1, 1),
                       random.tensor(matrix, -1, 1)},
                      oracle(), {.second_order = false, .draws = 1});
  CHECK_MESSAGE(report.passed, to_string(report));
}

TEST_CASE("derivatives refuse what they cannot differentiate, by name") {
  Graph graph;
  Graph other;
  const Node x = vector_input(graph, "x");
  const Node y = vector_input(other, "y");
  const Node number = graph.input("n", {DType::float64, {}});
  const auto refuses = [](const auto& call, std::initializer_list<const char*> words) {
    const std::string text = error_text<UserError>(call);
    for (const char* const word : words) {
      CAPTURE(text);
      CHECK(text.find(word) != std::string::npos);
    }
  };
  refuses([&] { jvp({}, {&x, 1}, {&x, 1}); }, {"jvp()", "no output"});
  refuses([&] { jvp({&x, 1}, {}, {}); }, {"jvp(input %0", "wrt is empty"});
  refuses([&] { jvp({&x, 1}, {&x, 1}, {}); }, {"jvp(input %0", "0 tangents for 1"});
  refuses(
      [&] {
        jvp({&x, 1}, {&x, 1}, {&number, 1});
      },
      {"jvp(input %0", "the tangent of input %0", "float64[3]"});
  refuses([&] { jvp({&x, 1}, {&x, 1}, {&y, 1}); }, {"jvp(input %0", "another graph"});
  refuses([&] { hvp(number, {}, {}); }, {"hvp(input %1", "wrt is empty"});
  refuses([&] { jacobian(x, Node()); }, {"an empty Node"});
  refuses([&] { hessian(number, Node()); }, {"an empty Node"});
  refuses([&] { hvp(number, {&x, 1}, {}); }, {"hvp(input %1", "0 vectors for 1"});
  refuses([&] { jacobian(cast(x, DType::float32), x); }, {"jacobian(cast", "cast() the output"});
  refuses([&] { hessian(x, x); }, {"scalar"});
}

}  // namespace plexaura::testing::products_test
