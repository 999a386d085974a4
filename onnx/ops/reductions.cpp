// Ops that combine the elements along axes, and products of matrices.

#include <fmt/format.h>
#include <limits>
#include <numeric>

#include "onnx/ops/matrices.h"
#include "onnx/ops/table.h"

#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/einsum.h"
#include "core/ops/linear_algebra.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/ops/statistics.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

Node sum_of_magnitudes(Operand x, ReduceOptions options) { return sum(abs(x), std::move(options)); }
Node sum_of_squares(Operand x, ReduceOptions options) { return sum(x.node() * x.node(), std::move(options)); }
Node euclidean_norm(Operand x, ReduceOptions options) { return sqrt(sum_of_squares(x, std::move(options))); }
Node log_of_sum(Operand x, ReduceOptions options) { return log(sum(x, std::move(options))); }

// Returns the maximum (`is_largest`) or the minimum; of bools, the logical or, or the logical and. For no elements of
// a floating dtype or bool it returns the lowest or the highest value of the dtype.
Node extremum(const Node& x, const ReduceOptions& options, bool is_largest) {
  const bool is_flag = x.dtype() == DType::boolean;
  const Node numbers = is_flag ? cast(x, DType::uint8) : x;
  if (x.shape().elements() > 0 || !(is_flag || is_floating(x.dtype())))
    return cast(is_largest ? max(numbers, options) : min(numbers, options), x.dtype());
  const double lowest = is_flag ? 0 : -std::numeric_limits<double>::infinity();
  const double highest = is_flag ? 1 : std::numeric_limits<double>::infinity();
  return cast(sum(numbers, options) + (is_largest ? lowest : highest), x.dtype());
}

Node largest(Operand x, ReduceOptions options) { return extremum(x.node(), options, true); }
Node smallest(Operand x, ReduceOptions options) { return extremum(x.node(), options, false); }

// The axes are an attribute in older versions, and input 1 in newer ones.
template <Node (*function)(Operand, ReduceOptions)>
std::vector<Node> reduce_by(Call& call) {
  ReduceOptions options{.axes = call.has(1) ? call.input_integers(1) : call.integers("axes"),
                        .keepdims = call.flag("keepdims", true)};
  // Without axes this attribute reduces each element alone: ReduceSumSquare returns its square, and ReduceSum the
  // element.
  const bool is_alone = call.flag("noop_with_empty_axes", false) && options.axes.empty();
  if (is_alone) return {function(unsqueeze(call[0], 0), {.axes = {0}, .keepdims = false})};
  return {function(call[0], std::move(options))};
}

template <Node (*function)(Operand, std::int64_t)>
std::vector<Node> softmax_along(Call& call) {
  return {function(call[0], call.integer("axis", -1))};
}

// Before version 13 the axes from `axis` on were taken together.
template <Node (*function)(Operand, std::int64_t)>
std::vector<Node> softmax_from(Call& call) {
  const Shape& shape = call[0].shape();
  const std::int64_t axis = normalise_axis(call.integer("axis", 1), shape.rank());
  return {reshape(function(as_matrix(call[0], axis), -1), shape.extents())};
}

std::vector<Node> product_of_matrices(Call& call) { return {matrix_product(call[0], call[1])}; }

std::vector<Node> general_product(Call& call) {
  call.ignore("broadcast");
  const double alpha = call.real("alpha", 1);
  const double beta = call.real("beta", 1);
  const bool transpose_a = call.flag("transA", false);
  for (std::size_t i = 0; i < 2; ++i)
    if (call[i].shape().rank() != 2)
      throw UserError(fmt::format("input {} must be a matrix, not {}", i, to_string(call[i].shape())));
  Node product =
      matmul(call[0], call[1], {.transpose_a = transpose_a, .transpose_b = call.flag("transB", false)});
  if (alpha != 1) product = product * alpha;
  if (!call.has(2) || beta == 0) return {product};
  return {with_shape_of(product, product + (beta == 1 ? call[2] : call[2] * beta))};
}

std::vector<Node> einstein_sum(Call& call) {
  std::string equation = call.text("equation", "");
  std::erase(equation, ' ');
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < call.inputs(); ++i) operands.emplace_back(call[i]);
  return {einsum(equation, operands)};
}

std::vector<Node> determinant(Call& call) { return {det(call[0])}; }

constexpr Row rows_of_reductions[] = {
    {"Det", 11, determinant},
    {"Einsum", 12, einstein_sum},
    {"Gemm", 6, general_product},
    {"LogSoftmax", 1, softmax_from<log_softmax>},
    {"LogSoftmax", 13, softmax_along<log_softmax>},
    {"MatMul", 1, product_of_matrices},
    {"ReduceL1", 1, reduce_by<sum_of_magnitudes>},
    {"ReduceL2", 1, reduce_by<euclidean_norm>},
    {"ReduceLogSum", 1, reduce_by<log_of_sum>},
    {"ReduceLogSumExp", 1, reduce_by<logsumexp>},
    {"ReduceMax", 1, reduce_by<largest>},
    {"ReduceMean", 1, reduce_by<mean>},
    {"ReduceMin", 1, reduce_by<smallest>},
    {"ReduceProd", 1, reduce_by<prod>},
    {"ReduceSum", 1, reduce_by<sum>},
    {"ReduceSumSquare", 1, reduce_by<sum_of_squares>},
    {"Softmax", 1, softmax_from<softmax>},
    {"Softmax", 13, softmax_along<softmax>},
};

}  // namespace

Node matrix_product(const Node& a, const Node& b) {
  const bool is_row = a.shape().rank() == 1;
  const bool is_column = b.shape().rank() == 1;
  Node product = matmul(is_row ? unsqueeze(a, 0) : a, is_column ? unsqueeze(b, 1) : b);
  if (is_column) product = squeeze(product, -1);
  return is_row ? squeeze(product, is_column ? -1 : -2) : product;
}

Node as_matrix(const Node& x, std::int64_t axis) {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  for (std::int64_t i = 0; i < x.shape().rank(); ++i) (i < axis ? rows : columns) *= x.shape()[i];
  return reshape(x, {rows, columns});
}

std::span<const Row> reduce_rows() { return rows_of_reductions; }

}  // namespace plexaura::onnx
