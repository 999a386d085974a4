#include "core/ops/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/arrange.h"
#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/constants.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

Node with_swapped_axes(const Node& x) { return transpose(x, -2, -1); }

std::vector<std::int64_t> axes_before_matrices(const Shape& shape) {
  return {shape.begin(), shape.end() - 2};
}

Shape with_matrices(std::vector<std::int64_t> before, std::int64_t rows, std::int64_t columns) {
  before.insert(before.end(), {rows, columns});
  return Shape(std::move(before));
}

void require_square(const TensorType& a) {
  require_floating(a);
  if (size_of(a.dtype) == 2) throw RuleError("is defined for float32 and float64; use cast()");
  const std::int64_t rank = a.shape.rank();
  if (rank < 2 || a.shape[rank - 1] != a.shape[rank - 2])
    throw RuleError("needs square matrices, along the last two axes");
}

void require_right_side(const TensorType& a, const TensorType& b) {
  require_same_dtype(a, b);
  const std::int64_t rank = a.shape.rank();
  if (b.shape.rank() != rank || !std::equal(a.shape.begin(), a.shape.end() - 1, b.shape.begin()))
    throw RuleError(fmt::format("b must have {} rows, one for each row of a, and the same axes before them",
                                a.shape[rank - 1]));
}

TensorType factors_of(const TensorType& a) {
  const std::int64_t size = a.shape[a.shape.rank() - 1];
  return {a.dtype, with_matrices(axes_before_matrices(a.shape), size, size + 1)};
}

void require_factors(const TensorType& a, const TensorType& factors) {
  require_square(a);
  if (factors != factors_of(a)) throw RuleError("needs the matrices and their factors");
}

// An operand of an op of matrices, in the dtype in which it is computed. While this object lives, new nodes have the line
// of the caller as their origin.
struct MatrixOperand {
  MatrixOperand(std::string_view builder, const Operand& a)
      : guard(origin_of_caller(a)), dtype(a.node().dtype()) {
    require_floating_operand(builder, a);
    const Shape& shape = a.node().shape();
    require_that(shape.rank() >= 2 && shape[shape.rank() - 1] == shape[shape.rank() - 2], builder, {a},
                 "needs square matrices, along the last two axes");
    value = size_of(dtype) == 2 ? cast(a.node(), DType::float32) : a.node();
  }
  Node rounded(const Node& result) const { return cast(result, dtype); }

  Graph::WithOrigin guard;
  DType dtype;
  Node value;
};

// The operands of an equation a x = b, with their other axes broadcast.
struct EquationOperands {
  EquationOperands(std::string_view builder, const Operand& left, const Operand& right)
      : matrix(builder, left) {
    const Node given = right.node();
    require_that(given.dtype() == matrix.dtype, builder, {left, right},
                 "both must have one dtype; cast() one of them");
    const Shape shape = matrix.value.shape();
    const std::int64_t size = shape[shape.rank() - 1];
    const Shape of_b = given.shape();
    require_that(of_b.rank() >= 2 && of_b[of_b.rank() - 2] == size, builder, {left, right},
                 fmt::format("b must have {} rows, one for each row of a; unsqueeze() a vector", size));
    Shape before;
    try {
      before = broadcast(Shape(axes_before_matrices(shape)), Shape(axes_before_matrices(of_b)));
    } catch (const std::invalid_argument& rule) {
      require_that(false, builder, {left, right}, rule.what());
    }
    const auto spread = [&](const Node& x, std::int64_t columns) {
      const Shape to = with_matrices(before.extents(), size, columns);
      return x.shape() == to ? x : broadcast_to(x, to);
    };
    a = spread(matrix.value, size);
    b = spread(cast(given, matrix.value.dtype()), of_b[of_b.rank() - 1]);
  }

  MatrixOperand matrix;
  Node a;
  Node b;
};

Node factorised(const Node& a) { return apply(std::make_shared<LuFactors>(), {a}); }

Node solved(const Node& a, const Node& factors, const Node& b, bool transposes) {
  return apply(std::make_shared<LuSolve>(LuSolveOptions{transposes}), {a, factors, b});
}

Node identities_like(const Node& a) {
  const std::int64_t size = a.shape()[a.shape().rank() - 1];
  return broadcast_to(eye(a.graph(), size, size, a.dtype()), a.shape());
}

Node determinant(const MatrixOperand& of, bool logarithm) {
  return of.rounded(
      apply(std::make_shared<LuDet>(LuDetOptions{logarithm}), {of.value, factorised(of.value)}));
}

}  // namespace

std::vector<TensorType> Cholesky::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  require_square(inputs[0]);
  return {inputs[0]};
}

// With P = L^T grad, of which the upper triangle is removed and the diagonal halved, the gradient is the symmetric part
// of L^-T P L^-1.
std::vector<Node> Cholesky::vjp(const VjpRequest& request) const {
  const Node& factor = request.outputs[0];
  const Node product = matmul(factor, request.grad_outputs[0], {.transpose_a = true});
  const Node lower = tril(product) - product * identities_like(factor) * 0.5;
  const TriangularSolveOptions of_transpose{.transpose = true};
  const Node left = triangular_solve(factor, lower, of_transpose);
  const Node both = with_swapped_axes(triangular_solve(factor, with_swapped_axes(left), of_transpose));
  return {(both + with_swapped_axes(both)) * 0.5};
}

std::vector<TensorType> TriangularSolve::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_square(inputs[0]);
  require_right_side(inputs[0], inputs[1]);
  return {inputs[1]};
}

std::vector<Node> TriangularSolve::vjp(const VjpRequest& request) const {
  TriangularSolveOptions adjoint = options();
  adjoint.transpose = !adjoint.transpose;
  const Node grad_b = triangular_solve(request.inputs[0], request.grad_outputs[0], adjoint);
  if (!request.wanted[0]) return {Node(), grad_b};
  const Node& x = request.outputs[0];
  const Node product = options().transpose ? matmul(x, grad_b, {.transpose_b = true})
                                           : matmul(grad_b, x, {.transpose_b = true});
  const std::int64_t beside = options().unit_diagonal ? 1 : 0;
  return {-(options().upper ? triu(product, beside) : tril(product, -beside)), grad_b};
}

std::vector<TensorType> LuFactors::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  require_square(inputs[0]);
  return {factors_of(inputs[0])};
}

std::vector<TensorType> LuSolve::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 3);
  require_factors(inputs[0], inputs[1]);
  require_right_side(inputs[0], inputs[2]);
  return {inputs[2]};
}

std::vector<Node> LuSolve::vjp(const VjpRequest& request) const {
  const Node& a = request.inputs[0];
  const Node& x = request.outputs[0];
  const bool transposes = options().transpose;
  const Node grad_b = solved(a, request.inputs[1], request.grad_outputs[0], !transposes);
  Node grad_a;
  if (request.wanted[0])
    grad_a =
        -(transposes ? matmul(x, grad_b, {.transpose_b = true}) : matmul(grad_b, x, {.transpose_b = true}));
  return {grad_a, Node(), grad_b};
}

std::vector<TensorType> LuDet::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_factors(inputs[0], inputs[1]);
  return {{inputs[0].dtype, Shape(axes_before_matrices(inputs[0].shape))}};
}

// The gradient of the logarithm is the transpose of the inverse. The gradient of the determinant is that gradient times
// the determinant.
std::vector<Node> LuDet::vjp(const VjpRequest& request) const {
  const Node& a = request.inputs[0];
  const Node& grad = request.grad_outputs[0];
  const Node of_result = options().logarithm ? grad : grad * request.outputs[0];
  const Node inverses = solved(a, request.inputs[1], identities_like(a), true);
  return {inverses * unsqueeze(unsqueeze(of_result, -1), -1), Node()};
}

Node cholesky(Operand a) {
  const MatrixOperand of("cholesky", a);
  const Node symmetric = (of.value + with_swapped_axes(of.value)) * 0.5;
  return of.rounded(apply(std::make_shared<Cholesky>(), {symmetric}));
}

Node triangular_solve(Operand a, Operand b, TriangularSolveOptions options) {
  const EquationOperands of("triangular_solve", a, b);
  return of.matrix.rounded(apply(std::make_shared<TriangularSolve>(options), {of.a, of.b}));
}

Node solve(Operand a, Operand b) {
  const EquationOperands of("solve", a, b);
  return of.matrix.rounded(solved(of.a, factorised(of.a), of.b, false));
}

Node inverse(Operand a) {
  const MatrixOperand of("inverse", a);
  return of.rounded(solved(of.value, factorised(of.value), identities_like(of.value), false));
}

Node det(Operand a) { return determinant({"det", a}, false); }
Node logdet(Operand a) { return determinant({"logdet", a}, true); }

}  // namespace plexaura
