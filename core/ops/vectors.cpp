#include "core/ops/vectors.h"

#include <cmath>
#include <fmt/format.h>

#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/statistics.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

void require_vectors(std::string_view builder, const Operand& a, const Operand& b) {
  const TensorType& of_a = a.node().type();
  const TensorType& of_b = b.node().type();
  require_that(of_a.shape.rank() == 1 && of_b.shape.rank() == 1, builder, {a, b},
               "both must have one axis; reshape or flatten() them");
  require_that(of_a.dtype == of_b.dtype, builder, {a, b}, "both must have one dtype; cast() one of them");
  require_that(of_a.dtype != DType::boolean, builder, {a, b},
               "is defined for numbers, not for bool; use cast()");
}

}  // namespace

Node dot(Operand a, Operand b) {
  require_vectors("dot", a, b);
  const std::int64_t count = a.node().shape()[0];
  require_that(b.node().shape()[0] == count, "dot", {a, b}, "both must have equally many elements");
  const auto where = a.where();
  if (!is_floating(a.node().dtype())) return sum({mul(a, b), where});
  const Node product = matmul({reshape(a, {1, count}), where}, {reshape(b, {count, 1}), where});
  return reshape({product, where}, {});
}

Node outer(Operand a, Operand b) {
  require_vectors("outer", a, b);
  return mul({reshape(a, {a.node().shape()[0], 1}), a.where()}, b);
}

Node cosine_similarity(Operand a, Operand b, std::int64_t axis, double epsilon) {
  require_floating_operand("cosine_similarity", a);
  const DType dtype = a.node().dtype();
  require_that(b.node().dtype() == dtype, "cosine_similarity", {a, b},
               "both must have one dtype; cast() one of them");
  require_that(epsilon > 0 && std::isfinite(epsilon), "cosine_similarity", {a, b},
               fmt::format("epsilon must be a finite number above 0, not {}", epsilon));
  const Graph::WithOrigin guard = origin_of_caller(a);
  const DType wide = size_of(dtype) == 2 ? DType::float32 : dtype;
  const Node of_a = cast(a, wide);
  const Node of_b = cast(b, wide);
  const Node products = of_a * of_b;
  axis = axis_of("cosine_similarity", {products, a.where()}, axis, products.shape().rank());
  const auto length = [&](const Node& x) {
    const Node all = x.shape() == products.shape() ? x : broadcast_to(x, products.shape());
    return maximum(norm(all, {.axes = {axis}}), epsilon);
  };
  return cast(sum(products, {.axes = {axis}}) / (length(of_a) * length(of_b)), dtype);
}

}  // namespace plexaura
