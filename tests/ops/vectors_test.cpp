#include "core/ops/vectors.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <utility>

#include "core/graph/graph.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::vectors_test {

namespace {

using reference::at;

Tensor dot_of(const Tensor& a, const Tensor& b) {
  Tensor total = reference::zeros({});
  for (std::int64_t i = 0; i < a.elements(); ++i) at(total) += at(a, i) * at(b, i);
  return total;
}

Tensor outer_of(const Tensor& a, const Tensor& b) {
  Tensor products = reference::zeros({a.elements(), b.elements()});
  for (std::int64_t i = 0; i < a.elements(); ++i)
    for (std::int64_t j = 0; j < b.elements(); ++j) at(products, i, j) = at(a, i) * at(b, j);
  return products;
}

OpCase dot_case(std::int64_t count) {
  return {"dot of " + std::to_string(count),
          "matmul",
          [](Graph&, auto x) { return std::vector{dot(x[0], x[1])}; },
          {{{count}, between(0.5, 1)}, {{count}, between(0.5, 1)}},
          [](auto x) { return std::vector{dot_of(x[0], x[1])}; }};
}

OpCase outer_case(std::int64_t rows, std::int64_t columns) {
  return {"outer of " + std::to_string(rows) + " and " + std::to_string(columns),
          "mul",
          [](Graph&, auto x) { return std::vector{outer(x[0], x[1])}; },
          {{{rows}}, {{columns}}},
          [](auto x) { return std::vector{outer_of(x[0], x[1])}; }};
}

// Lengths below epsilon count as epsilon.
double cosine_of(const std::vector<double>& a, const std::vector<double>& b, double epsilon) {
  double product = 0;
  double square_a = 0;
  double square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += a[i] * b[i];
    square_a += a[i] * a[i];
    square_b += b[i] * b[i];
  }
  return product / (std::max(std::sqrt(square_a), epsilon) * std::max(std::sqrt(square_b), epsilon));
}

// a is [2, 3, 4]; b is that, or one of the rows [4] for all.
OpCase cosine_case(std::int64_t axis, std::size_t from_front, Shape b, double epsilon, Values values) {
  return {"cosine_similarity along axis " + std::to_string(axis) + ", " + to_string(b) + ", " +
              std::to_string(epsilon),
          "sqrt",
          [=](Graph&, auto x) { return std::vector{cosine_similarity(x[0], x[1], axis, epsilon)}; },
          {{{2, 3, 4}, values}, {b, values}},
          [=](auto x) {
            const Tensor all = reference::broadcast_to(x[1], x[0].shape());
            std::vector<std::int64_t> extents{2, 3, 4};
            const std::int64_t extent = std::exchange(extents[from_front], 1);
            Tensor y = reference::zeros(Shape(extents));
            reference::for_each_index(Shape(extents), [&](const reference::Index& index) {
              std::vector<double> of_a;
              std::vector<double> of_b;
              for (reference::Index place = index; place[from_front] < extent; ++place[from_front]) {
                of_a.push_back(at(x[0], place));
                of_b.push_back(at(all, place));
              }
              at(y, index) = cosine_of(of_a, of_b, epsilon);
            });
            extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(from_front));
            return std::vector{y.reshaped(Shape(extents))};
          }};
}

const Cases cases({
    cosine_case(-1, 2, {2, 3, 4}, 1e-8, away_from_zero(0.3)),
    cosine_case(1, 1, {2, 3, 4}, 1e-8, away_from_zero(0.3)),
    cosine_case(-1, 2, {4}, 1e-8, away_from_zero(0.3)),
    cosine_case(0, 0, {2, 3, 4}, 50, away_from_zero(0.3)),
    dot_case(5),
    dot_case(1),
    dot_case(0),
    outer_case(3, 4),
    outer_case(1, 2),
    outer_case(0, 3),
});

using Product = Node (*)(Operand, Operand);

WrongCase of_types(const std::string& op, const std::string& name, Product product, TensorType a,
                   TensorType b, std::vector<std::string> words) {
  return {op + ", " + name, op, [=](Graph& graph) { product(graph.input("a", a), graph.input("b", b)); },
          std::move(words)};
}

const TensorType three{DType::float32, {3}};

const WrongCases wrong({
    of_types("dot", "two counts", dot, three, {DType::float32, {1}},
             {"dot(float32[3], float32[1]): both must have equally many elements"}),
    of_types("dot", "matrices", dot, {DType::float32, {2, 3}}, {DType::float32, {2, 3}},
             {"both must have one axis", "flatten()"}),
    of_types("dot", "two dtypes", dot, three, {DType::float64, {3}}, {"both must have one dtype", "cast()"}),
    of_types("dot", "bools", dot, {DType::boolean, {3}}, {DType::boolean, {3}}, {"numbers, not for bool"}),
    of_types("outer", "a scalar", outer, three, {DType::float32, {}},
             {"outer(float32[3], float32[]): both must have one axis"}),
    of_types("outer", "two dtypes", outer, three, {DType::int64, {3}},
             {"both must have one dtype", "cast()"}),
    of_types("cosine_similarity", "integers", [](Operand a, Operand b) { return cosine_similarity(a, b); },
             {DType::int64, {3}}, {DType::int64, {3}}, {"floating", "cast()"}),
    of_types("cosine_similarity", "two dtypes", [](Operand a, Operand b) { return cosine_similarity(a, b); },
             three, {DType::float64, {3}}, {"both must have one dtype", "cast()"}),
    of_types("cosine_similarity", "no axis", [](Operand a, Operand b) { return cosine_similarity(a, b, 1); },
             three, three, {"axis 1 does not exist"}),
    of_types("cosine_similarity", "no epsilon",
             [](Operand a, Operand b) { return cosine_similarity(a, b, 0, 0); }, three, three,
             {"epsilon must be a finite number above 0, not 0"}),
});

}  // namespace

TEST_CASE("vectors: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("vectors: what they refuse") { check_all(wrong); }

TEST_CASE("the cosine of 16-bit floats is not computed in 16 bits") {
  Graph graph;
  const Node x = graph.input("x", {DType::float16, {2}});
  const auto results = Runner(graph, {cosine_similarity(x, x)},
                              test_backend())({Tensor::of<float>({2}, {300, 400}).cast(DType::float16)});
  CHECK(results[0].to_doubles()[0] == 1);
}

TEST_CASE("dot and outer of integers") {
  Graph graph;
  const Node a = graph.input("a", {DType::int64, {2}});
  const Node b = graph.input("b", {DType::int64, {2}});
  const auto results = Runner(graph, {dot(a, b), outer(a, b)}, test_backend())(
      {Tensor::of<std::int64_t>({2}, {2, 3}), Tensor::of<std::int64_t>({2}, {5, -7})});
  CHECK(results[0] == Tensor::scalar<std::int64_t>(-11));
  CHECK(results[1] == Tensor::of<std::int64_t>({2, 2}, {10, -14, 15, -21}));
}

}  // namespace plexaura::testing::vectors_test
