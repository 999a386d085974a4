#include "core/ops/matmul.h"

#include <fmt/format.h>

#include "core/ops/elementwise.h"

namespace plexaura {

namespace {

struct Matrices {
  Shape batch;
  std::int64_t rows;
  std::int64_t columns;
};

Matrices split(const Shape& shape, bool transpose) {
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
  const Matrices a = split(inputs[0].shape, options().transpose_a);
  const Matrices b = split(inputs[1].shape, options().transpose_b);
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

// With A and B as they enter the product (after the options): grad A = G B^T, grad B = A^T G.
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
  if (request.wanted[1])
    grad_b = tb ? matmul(grad, a, {.transpose_a = true, .transpose_b = ta})
                : matmul(a, grad, {.transpose_a = !ta, .transpose_b = false});
  return {grad_a, grad_b};
}

Node matmul(Operand a, Operand b, MatMulOptions options) {
  return apply(std::make_shared<MatMul>(options), {a, b});
}

}  // namespace plexaura
