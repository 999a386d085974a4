#include "core/scan/jacobian.h"

#include <cmath>
#include <doctest/doctest.h>

#include "core/graph/print.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/subscript.h"
#include "core/ops/unary.h"
#include "core/vm/function.h"
#include "tests/support/backend.h"
#include "tests/support/vectors.h"

namespace plexaura::testing::jacobian_test {

TEST_CASE("a Jacobian has the axes of the output and then those of the input") {
  Graph graph;
  const Node a = graph.input("a", {DType::float64, {2, 2}});
  const Node x = graph.input("x", {DType::float64, {2, 1}});
  const Node y = matmul(a, x);
  CHECK(jacobian(y, a).shape() == Shape{2, 1, 2, 2});
  CHECK(name_of(graph, jacobian(y, a).id()).find("jacobian_test.cpp") != std::string::npos);
  Function f(graph, {a, x}, {jacobian(y, x), jacobian(y, a), jacobian(sum(y), x)}, test_backend());
  const std::vector<Tensor> found =
      f(Tensor::of({2, 2}, std::vector<double>{1, 2, 3, 4}), Tensor::of({2, 1}, std::vector<double>{5, 7}));
  check_same_numbers(found[0], Tensor::of({2, 1, 2, 1}, std::vector<double>{1, 2, 3, 4}));
  check_same_numbers(found[1], Tensor::of({2, 1, 2, 2}, std::vector<double>{5, 7, 0, 0, 0, 0, 5, 7}));
  check_same_numbers(found[2], Tensor::of({2, 1}, std::vector<double>{4, 6}));
}

TEST_CASE("derivatives of the first three orders of one function") {
  Graph graph;
  const Node x = vector_input(graph, "x", 2);
  const Node loss = sum(exp(x)) + cube(x[0]) * x[1];
  const Node second = hessian(loss, x);
  Function f(graph, {x}, {jacobian(loss, x), second, jacobian(second, x)}, test_backend());
  const double a = 0.3;
  const double b = -0.7;
  const std::vector<Tensor> found = f(vector({a, b}));
  check_same_numbers(found[0], vector({std::exp(a) + 3 * a * a * b, std::exp(b) + a * a * a}));
  check_same_numbers(found[1], Tensor::of({2, 2}, std::vector<double>{std::exp(a) + 6 * a * b, 3 * a * a,
                                                                      3 * a * a, std::exp(b)}));
  check_same_numbers(found[2], Tensor::of({2, 2, 2}, std::vector<double>{std::exp(a) + 6 * b, 6 * a, 6 * a, 0,
                                                                         6 * a, 0, 0, std::exp(b)}));
}

TEST_CASE("what an output does not depend on has a Jacobian and a Hessian of zeros") {
  Graph graph;
  const Node x = vector_input(graph, "x", 2);
  const Node y = vector_input(graph, "y", 2);
  Function f(graph, {x, y}, {jacobian(y, x), hessian(sum(y), x), hessian(sum(x), x)}, test_backend());
  for (const Tensor& zeros : f(vector({1, 2}), vector({3, 4}))) {
    CHECK(zeros.shape() == Shape{2, 2});
    for (const double value : zeros.as<double>()) CHECK(value == 0);
  }
}

TEST_CASE("a Hessian has the dtype of its node, also if the loss has another one and does not depend on it") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2}});
  const Node y = vector_input(graph, "y", 2);
  CHECK(hessian(sum(y), x).type() == TensorType{DType::float32, {2, 2}});
  CHECK(hessian(sum(cast(x, DType::float64)), x).type() == TensorType{DType::float32, {2, 2}});
  CHECK(hessian(sum(square(cast(x, DType::float64))), x).type() == TensorType{DType::float32, {2, 2}});
}

TEST_CASE("a Jacobian of an empty output is empty") {
  Graph graph;
  const Node x = vector_input(graph, "x", 0);
  Function f(graph, {x}, {jacobian(square(x), x)}, test_backend());
  CHECK(f(Tensor(x.type()))[0].shape() == Shape{0, 0});
}

}  // namespace plexaura::testing::jacobian_test
