#include "core/graph/op.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace plexaura::testing::op_test {

TEST_CASE("an op is cast to its own class and to those that it derives from") {
  const MatMul matmul({.transpose_b = true});
  const Op& op = matmul;
  CHECK(&op_cast<MatMul>(op) == &matmul);
  CHECK(op_cast<OpWith<MatMulOptions>>(op).options().transpose_b);
}

TEST_CASE("a class from another shared object is known") {
  Graph graph;
  const Node y = clip(graph.input("x", {DType::float32, {2}}), -1, 2);
  CHECK(op_cast<FunctionOp>(*graph.record(y.id()).op).options().values == std::vector<double>{-1, 2});
}

TEST_CASE("an op of another class is refused in a sentence") {
  const ArgMax op({.axes = {0}});
  CHECK_THROWS_WITH_AS(op_cast<MatMul>(op),
                       "the op named 'argmax' is of another class than the one that its kernel reads; give "
                       "every op a name of its own, and cast it to the class of that name",
                       UserError);
}

}  // namespace plexaura::testing::op_test
