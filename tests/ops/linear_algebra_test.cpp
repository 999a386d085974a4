#include "core/ops/linear_algebra.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/arrange.h"
#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/constants.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"
#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::linear_algebra_test {

namespace {

using reference::at;
using reference::Index;

// Returns the determinant of a matrix of any size, expanded along the first row.
double determinant(const std::vector<std::vector<double>>& a) {
  if (a.empty()) return 1;
  double total = 0;
  for (std::size_t column = 0; column < a.size(); ++column) {
    std::vector<std::vector<double>> rest;
    for (std::size_t row = 1; row < a.size(); ++row) {
      rest.push_back(a[row]);
      rest.back().erase(rest.back().begin() + static_cast<std::ptrdiff_t>(column));
    }
    total += (column % 2 == 0 ? 1 : -1) * a[0][column] * determinant(rest);
  }
  return total;
}

using Rows = std::vector<std::vector<double>>;

Rows matrix_at(const Tensor& a, Index before) {
  const std::int64_t rank = a.shape().rank();
  Rows rows(static_cast<std::size_t>(a.shape()[rank - 2]));
  before.resize(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::int64_t j = 0; j < a.shape()[rank - 1]; ++j) {
      before[before.size() - 2] = static_cast<std::int64_t>(i);
      before[before.size() - 1] = j;
      rows[i].push_back(at(a, before));
    }
  return rows;
}

Shape before_matrices(const Shape& shape) {
  return Shape(std::vector<std::int64_t>(shape.begin(), shape.end() - 2));
}

// Solves a x = b by Cramer's rule: divides the determinant of a with one column replaced by a column of b by
// the determinant of a.
Tensor solution(const Tensor& a, const Tensor& b) {
  const std::int64_t rank = b.shape().rank();
  std::vector<std::int64_t> extents =
      broadcast(before_matrices(a.shape()), before_matrices(b.shape())).extents();
  const std::size_t others = extents.size();
  extents.insert(extents.end(), {b.shape()[rank - 2], b.shape()[rank - 1]});
  Tensor x = reference::zeros(Shape(extents));
  reference::for_each_index(x.shape(), [&](const Index& index) {
    const Index before(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(others));
    const Rows of_a = matrix_at(a, reference::before_broadcasting(before_matrices(a.shape()), before));
    const Rows of_b = matrix_at(b, reference::before_broadcasting(before_matrices(b.shape()), before));
    Rows replaced = of_a;
    for (std::size_t i = 0; i < replaced.size(); ++i)
      replaced[i][static_cast<std::size_t>(index[others])] =
          of_b[i][static_cast<std::size_t>(index[others + 1])];
    at(x, index) = determinant(replaced) / determinant(of_a);
  });
  return x;
}

Tensor identities(const Shape& shape) {
  Tensor result = reference::zeros(shape);
  reference::for_each_index(shape, [&](const Index& index) {
    at(result, index) = index[index.size() - 1] == index[index.size() - 2] ? 1 : 0;
  });
  return result;
}

// Returns the triangular matrix that the options make of a: elements that they exclude are 0, and the
// diagonal is 1 if `unit_diagonal` is set.
Tensor triangle_of(const Tensor& a, const TriangularSolveOptions& options) {
  Tensor result = reference::zeros(a.shape());
  reference::for_each_index(a.shape(), [&](const Index& index) {
    Index to = index;
    const std::size_t row = index.size() - 2;
    if (options.transpose) std::swap(to[row], to[row + 1]);
    const bool counts = options.upper ? index[row] <= index[row + 1] : index[row] >= index[row + 1];
    if (counts) at(result, to) = options.unit_diagonal && index[row] == index[row + 1] ? 1 : at(a, index);
  });
  return result;
}

// Matrices with a large diagonal, so that they are far from singular: 3 by 3.
const Values regular = [](std::span<double> values, Random&) {
  static constexpr std::array<double, 18> given{2,   0.5,  -0.25, 0.75, -1.75, 0.5, 0.25,  -0.5,  1.5,
                                                0.5, 2.25, 0.25,  -1.5, 0.25,  0.5, 0.125, -0.25, 2};
  std::copy_n(given.begin(), values.size(), values.begin());
};
const Tolerances some_digits{.float64 = 1e-12, .float32 = 2e-5, .bfloat16 = 1e-1, .float16 = 2e-2};

OpCase with_digits(OpCase op_case) {
  op_case.tolerances = some_digits;
  return op_case;
}

OpCase solve_case(const Shape& a, const Shape& b) {
  return with_digits({"solve of " + to_string(a) + " and " + to_string(b),
                      "lu_solve",
                      [](Graph&, auto x) { return std::vector{solve(x[0], x[1])}; },
                      {{a, regular}, {b}},
                      [](auto x) { return std::vector{solution(x[0], x[1])}; }});
}

OpCase triangular_case(const Shape& a, const Shape& b, const TriangularSolveOptions& options) {
  return with_digits({"triangular_solve of " + to_string(a) + ", " + to_string(description_of(options)),
                      "triangular_solve",
                      [=](Graph&, auto x) { return std::vector{triangular_solve(x[0], x[1], options)}; },
                      {{a, regular}, {b}},
                      [=](auto x) { return std::vector{solution(triangle_of(x[0], options), x[1])}; }});
}

OpCase determinant_case(const Shape& a, bool logarithm, const Values& values) {
  return with_digits({(logarithm ? "logdet of " : "det of ") + to_string(a),
                      "lu_det",
                      [=](Graph&, auto x) { return std::vector{logarithm ? logdet(x[0]) : det(x[0])}; },
                      {{a, values}},
                      [=](auto x) {
                        Tensor y = reference::zeros(before_matrices(a));
                        reference::for_each_index(y.shape(), [&](const Index& index) {
                          const double value = determinant(matrix_at(x[0], index));
                          at(y, index) = logarithm ? std::log(value) : value;
                        });
                        return std::vector{y};
                      }});
}

// Returns the Cholesky factor of m m^T + 2 I, row by row from the definition of the product.
Tensor cholesky_of(const Tensor& m) {
  Tensor lower = reference::zeros(m.shape());
  const std::int64_t size = m.shape()[m.shape().rank() - 1];
  reference::for_each_index(before_matrices(m.shape()), [&](const Index& before) {
    const Rows rows = matrix_at(m, before);
    const auto element = [&](std::int64_t i, std::int64_t j) -> double& {
      Index index = before;
      index.insert(index.end(), {i, j});
      return at(lower, index);
    };
    for (std::int64_t i = 0; i < size; ++i)
      for (std::int64_t j = 0; j <= i; ++j) {
        double rest = i == j ? 2 : 0;
        for (std::size_t k = 0; k < rows.size(); ++k)
          rest += rows[static_cast<std::size_t>(i)][k] * rows[static_cast<std::size_t>(j)][k];
        for (std::int64_t k = 0; k < j; ++k) rest -= element(i, k) * element(j, k);
        element(i, j) = i == j ? std::sqrt(rest) : rest / element(j, j);
      }
  });
  return lower;
}

OpCase cholesky_case(const Shape& shape) {
  return with_digits({"cholesky of " + to_string(shape),
                      "cholesky",
                      [](Graph& graph, auto x) {
                        const std::int64_t size = x[0].shape()[x[0].shape().rank() - 1];
                        const Node product = matmul(x[0], x[0], {.transpose_b = true});
                        return std::vector{cholesky(product + eye(graph, size, size, x[0].dtype()) * 2)};
                      },
                      {{shape}},
                      [](auto x) { return std::vector{cholesky_of(x[0])}; }});
}

const Cases cases({
    cholesky_case({3, 3}),
    cholesky_case({2, 3, 3}),
    cholesky_case({1, 1}),
    cholesky_case({0, 3, 3}),
    triangular_case({3, 3}, {3, 2}, {}),
    triangular_case({3, 3}, {3, 1}, {.upper = true}),
    triangular_case({3, 3}, {3, 2}, {.transpose = true}),
    triangular_case({3, 3}, {3, 2}, {.upper = true, .transpose = true}),
    triangular_case({3, 3}, {3, 2}, {.unit_diagonal = true}),
    triangular_case({2, 3, 3}, {2, 3, 2}, {.upper = true, .unit_diagonal = true}),
    triangular_case({3, 3}, {2, 3, 2}, {}),
    triangular_case({3, 3}, {3, 0}, {}),
    solve_case({3, 3}, {3, 2}),
    solve_case({2, 3, 3}, {2, 3, 1}),
    solve_case({2, 1, 3, 3}, {2, 3, 2}),
    solve_case({3, 3}, {3, 0}),
    solve_case({0, 3, 3}, {0, 3, 2}),
    solve_case({1, 1}, {1, 1}),
    with_digits({"solve by lu_factors with rows exchanged",
                 "lu_factors",
                 [](Graph&, auto x) { return std::vector{solve(x[0], x[1])}; },
                 {{{3, 3}, these({0, 2, 0.5, 0.25, 0, 1.5, 1, 0.5, 0})}, {{3, 2}}},
                 [](auto x) { return std::vector{solution(x[0], x[1])}; }}),
    with_digits({"inverse",
                 "lu_solve",
                 [](Graph&, auto x) { return std::vector{inverse(x[0])}; },
                 {{{2, 3, 3}, regular}},
                 [](auto x) { return std::vector{solution(x[0], identities(x[0].shape()))}; }}),
    determinant_case({3, 3}, false, regular),
    determinant_case({2, 3, 3}, false, regular),
    determinant_case({0, 3, 3}, false, regular),
    determinant_case({1, 1}, false, regular),
    determinant_case({3, 3}, false, these({0, 2, 0.5, 0.25, 0, 1.5, 1, 0.5, 0})),
    determinant_case({2, 2}, true, these({2, 0.5, -0.25, 1.75})),
    determinant_case({2, 2}, true, these({-2, 0.5, -0.25, -1.75})),
});

template <class Build>
WrongCase wrong_use(const std::string& name, const std::string& op, const Build& build,
                    std::vector<std::string> words) {
  return {name, op,
          [=](Graph& graph) {
            build(graph.input("a", {DType::float32, {3, 3}}), graph.input("b", {DType::float32, {2, 3}}));
          },
          std::move(words)};
}

const WrongCases wrong({
    wrong_use("cholesky of no square", "cholesky", [](const Node&, const Node& b) { cholesky(b); },
              {"cholesky(float32[2,3]): needs square matrices"}),
    wrong_use("cholesky of integers", "cholesky",
              [](const Node& a, const Node&) { cholesky(cast(a, DType::int64)); }, {"floating", "cast()"}),
    wrong_use("cholesky of 16 bits without its builder", "cholesky",
              [](const Node& a, const Node&) {
                apply(std::make_shared<Cholesky>(), {cast(a, DType::float16)});
              },
              {"float32 and float64", "cast()"}),
    wrong_use("triangular_solve of other rows", "triangular_solve",
              [](const Node& a, const Node& b) { triangular_solve(a, b); },
              {"b must have 3 rows, one for each row of a"}),
    wrong_use("triangular_solve without its builder", "triangular_solve",
              [](const Node& a, const Node& b) {
                apply(std::make_shared<TriangularSolve>(TriangularSolveOptions{}), {a, b});
              },
              {"b must have 3 rows", "the same axes before them"}),
    wrong_use("solve of two dtypes", "solve",
              [](const Node& a, const Node& b) { solve(a, cast(transpose(b, 0, 1), DType::float64)); },
              {"both must have one dtype", "cast()"}),
    wrong_use("solve for a vector", "solve",
              [](const Node& a, const Node& b) { solve(a, sum(b, {.axes = {0}})); },
              {"unsqueeze() a vector"}),
    wrong_use("solve of other axes before the matrices", "solve",
              [](const Node& a, const Node&) {
                solve(stack({a, a}), stack({a, a, a}));
              },
              {"solve(float32[2,3,3], float32[3,3,3]): [2] and [3] do not broadcast"}),
    wrong_use("lu_factors of no square", "lu_factors",
              [](const Node&, const Node& b) { apply(std::make_shared<LuFactors>(), {b}); },
              {"needs square matrices"}),
    wrong_use("lu_solve without factors", "lu_solve",
              [](const Node& a, const Node&) {
                apply(std::make_shared<LuSolve>(LuSolveOptions{}), {a, a, a});
              },
              {"needs the matrices and their factors"}),
    wrong_use("lu_det without factors", "lu_det",
              [](const Node& a, const Node&) {
                apply(std::make_shared<LuDet>(LuDetOptions{}), {a, a});
              },
              {"needs the matrices and their factors"}),
    wrong_use("inverse of no square", "inverse", [](const Node&, const Node& b) { inverse(b); },
              {"needs square matrices"}),
    wrong_use("det of no square", "det", [](const Node&, const Node& b) { det(b); },
              {"needs square matrices"}),
    wrong_use("logdet of no square", "logdet", [](const Node&, const Node& b) { logdet(b); },
              {"needs square matrices"}),
});

std::vector<Tensor> run(const Tensor& value, const std::function<std::vector<Node>(const Node&)>& build) {
  Graph graph;
  const Node a = graph.input("a", value.type());
  return Runner(graph, build(a), test_backend())({value});
}

const Tensor second_is_singular = Tensor::of<float>({2, 2, 2}, {1, 0, 0, 1, 1, 2, 2, 4});

}  // namespace

TEST_CASE("linear algebra: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("linear algebra: what it refuses") { check_all(wrong); }

TEST_CASE("a singular matrix is named by solve and inverse, and has the determinant 0") {
  for (const auto& build : {std::function<Node(const Node&)>([](const Node& a) { return solve(a, a); }),
                            std::function<Node(const Node&)>([](const Node& a) { return inverse(a); })}) {
    const std::string text = error_text<Error>(
        [&] { run(second_is_singular, [&](const Node& a) { return std::vector{build(a)}; }); });
    CHECK_MESSAGE(text.find("matrix 1 is singular") != std::string::npos, text);
    CHECK_MESSAGE(text.find("linear_algebra_test.cpp") != std::string::npos, text);
  }
  const auto results = run(second_is_singular, [](const Node& a) { return std::vector{det(a), logdet(a)}; });
  CHECK(results[0].to_doubles() == std::vector<double>{1, 0});
  CHECK(results[1].to_doubles() == std::vector<double>{0, -INFINITY});
}

TEST_CASE("the logarithm of a negative determinant is NaN") {
  const auto results = run(Tensor::of<float>({2, 2}, {0, 2, 3, 0}), [](const Node& a) {
    return std::vector{det(a), logdet(a)};
  });
  CHECK(results[0].to_doubles()[0] == -6);
  CHECK(std::isnan(results[1].to_doubles()[0]));
}

TEST_CASE("a matrix that is not positive definite is named by cholesky") {
  for (const Tensor& value : {second_is_singular, Tensor::of<float>({2, 2, 2}, {1, 0, 0, 1, 1, 0, 0, -4})}) {
    const std::string text =
        error_text<Error>([&] { run(value, [](const Node& a) { return std::vector{cholesky(a)}; }); });
    CHECK_MESSAGE(text.find("matrix 1 is not positive definite") != std::string::npos, text);
    CHECK_MESSAGE(text.find("linear_algebra_test.cpp") != std::string::npos, text);
  }
}

TEST_CASE("the determinant of an empty matrix is 1") {
  const auto results = run(Tensor({DType::float32, {0, 0}}), [](const Node& a) {
    return std::vector{det(a), logdet(a)};
  });
  CHECK(results[0].to_doubles()[0] == 1);
  CHECK(results[1].to_doubles()[0] == 0);
}

}  // namespace plexaura::testing::linear_algebra_test
