#include "core/ops/matmul.h"

#include <fmt/format.h>

#include "core/loops/gemm.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"
#include "core/ops/shape.h"

namespace plexaura {

namespace {

struct MatrixShapes {
  Shape batch;
  std::int64_t rows;
  std::int64_t columns;
};

MatrixShapes split(const Shape& shape, bool transpose) {
  const auto& extents = shape.extents();
  const std::int64_t second_last = shape[shape.rank() - 2];
  const std::int64_t last = shape[shape.rank() - 1];
  Shape batch(std::vector<std::int64_t>(extents.begin(), extents.end() - 2));
  return {std::move(batch), transpose ? last : second_last, transpose ? second_last : last};
}

}  // namespace

std::vector<TensorType> MatMul::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_floating(inputs[0]);
  require_same_dtype(inputs[0], inputs[1]);
  if (inputs[0].shape.rank() < 2 || inputs[1].shape.rank() < 2)
    throw RuleError("both operands need two axes or more; reshape a vector to one row or one column");
  const MatrixShapes a = split(inputs[0].shape, options().transpose_a);
  const MatrixShapes b = split(inputs[1].shape, options().transpose_b);
  if (a.columns != b.rows)
    throw RuleError(fmt::format(
        "the inner extents must be equal (K is {} on the left and {} on the right); transpose one operand "
        "with the options, or reshape it",
        a.columns, b.rows));
  std::vector<std::int64_t> extents = broadcast(a.batch, b.batch).extents();
  extents.push_back(a.rows);
  extents.push_back(b.columns);
  return {{inputs[0].dtype, Shape(std::move(extents))}};
}

namespace {

// Joins the matrices of x [..., M, N], which has elements, to one of all rows.
Node rows_of(const Node& x) { return reshape(x, {-1, x.shape()[x.shape().rank() - 1]}); }

}  // namespace

// With A and B after their transposition: grad A = G B^T, grad B = A^T G. If B is one matrix for many of A, grad B is
// one product over all rows.
std::vector<Node> MatMul::vjp(const VjpRequest& request) const {
  const Node& a = request.inputs[0];
  const Node& b = request.inputs[1];
  const Node& grad = request.grad_outputs[0];
  const bool ta = options().transpose_a;
  const bool tb = options().transpose_b;
  Node grad_a;
  Node grad_b;
  if (request.wanted[0])
    grad_a = ta ? matmul(b, grad, {.transpose_a = tb, .transpose_b = true})
                : matmul(grad, b, {.transpose_a = false, .transpose_b = !tb});
  if (request.wanted[1]) {
    const bool joins = b.shape().rank() == 2 && a.shape().rank() > 2 && !ta && a.shape().elements() > 0 &&
                       grad.shape().elements() > 0;
    const Node left = joins ? rows_of(a) : a;
    const Node above = joins ? rows_of(grad) : grad;
    grad_b = tb ? matmul(above, left, {.transpose_a = true, .transpose_b = ta})
                : matmul(left, above, {.transpose_a = !ta, .transpose_b = false});
  }
  return {grad_a, grad_b};
}

Node matmul(Operand a, Operand b, MatMulOptions options) {
  return apply(std::make_shared<MatMul>(options), {a, b});
}

namespace {

using namespace portable;

// An operand as a stack of matrices, with strides after the transpose option. Batch axes are broadcast.
template <class T>
struct Matrices {
  Matrices(const HostView& view, bool transpose, const Shape& result)
      : data(view.as<T>()), shape(view.shape()), product(result) {
    const std::int64_t last = shape[shape.rank() - 1];
    row_step = transpose ? 1 : last;
    column_step = transpose ? last : 1;
  }

  // Returns the operand's matrix for the product with this index.
  const T* at(std::int64_t index) const {
    std::int64_t offset = 0;
    for (std::int64_t axis = product.rank() - 2; axis-- > 0;) {
      offset += index % product[axis] * broadcast_stride(shape, product, axis);
      index /= product[axis];
    }
    return data + offset;
  }

  const T* data;
  const Shape& shape;
  const Shape& product;
  std::int64_t row_step;
  std::int64_t column_step;
};

template <class T, class Sum>
void load(const T* src, std::int64_t step, std::int64_t count, Sum* dst) {
  if (step == 1) {
    for (std::int64_t i = 0; i < count; ++i) dst[i] = static_cast<Sum>(src[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) dst[i] = static_cast<Sum>(src[i * step]);
  }
}

template <class T>
void matmul_of(const HostCall& call, const MatMulOptions& options, std::int64_t inner) {
  using Sum = Products<T>;
  const Shape& result = call.outputs[0].shape();
  const Matrices<T> a(call.inputs[0], options.transpose_a, result);
  const Matrices<T> b(call.inputs[1], options.transpose_b, result);
  const std::int64_t rows = result[result.rank() - 2];
  const std::int64_t columns = result[result.rank() - 1];
  T* dst = call.outputs[0].as<T>();
  gemm<Sum>(
      result.elements() / (rows * columns), rows, columns, inner,
      [&](std::int64_t product, std::int64_t row, std::int64_t k, std::int64_t count, Sum* to) {
        load(a.at(product) + row * a.row_step + k * a.column_step, a.column_step, count, to);
      },
      [&](std::int64_t product, std::int64_t k, std::int64_t column, std::int64_t count, Sum* to) {
        load(b.at(product) + k * b.row_step + column * b.column_step, b.column_step, count, to);
      },
      [&](std::int64_t product, std::int64_t row, std::int64_t column, std::int64_t count, const Sum* from) {
        T* to = dst + (product * rows + row) * columns + column;
        for (std::int64_t i = 0; i < count; ++i) to[i] = T(from[i]);
      });
}

}  // namespace

void MatMul::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const Shape& a = call.inputs[0].shape();
  const std::int64_t inner = a[a.rank() - (options().transpose_a ? 2 : 1)];
  dispatch_floating(result.dtype(),
                    [&]<class T>(std::type_identity<T>) { matmul_of<T>(call, options(), inner); });
}

}  // namespace plexaura
