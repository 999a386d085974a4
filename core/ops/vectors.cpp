#include "core/ops/vectors.h"

#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

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

}  // namespace plexaura
