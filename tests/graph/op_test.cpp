#include "core/graph/op.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace plexaura::testing::op_test {

namespace {

struct Doubled final : OpOf<Doubled> {
  std::string_view name() const override { return "doubled_of_this_test"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  void compute(const HostCall& call) const {
    for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i)
      call.outputs[0].as<float>()[i] = 2 * call.inputs[0].as<float>()[i];
  }
};

// An op that passes another op's type to OpOf as its own.
struct Impostor final : OpOf<Doubled> {
  std::string_view name() const override { return "impostor_of_this_test"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
};

struct Uncomputed final : OpOf<Uncomputed, MatMulOptions> {
  using OpOf::OpOf;
  std::string_view name() const override { return "uncomputed_of_this_test"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
};

}  // namespace

TEST_CASE("the reference kernel of an op is its compute()") {
  const Doubled op;
  const TensorType type{DType::float32, {2}};
  float x[] = {1, -3};
  float y[] = {0, 0};
  const HostView from{reinterpret_cast<std::byte*>(x), &type};
  const HostView to{reinterpret_cast<std::byte*>(y), &type};
  const HostKernel kernel = op.reference();
  REQUIRE(static_cast<bool>(kernel));
  kernel(op, {{&from, 1}, {&to, 1}});
  CHECK(y[0] == 2);
  CHECK(y[1] == -6);
}

TEST_CASE("an op without compute() has no reference kernel, and its options all the same") {
  const Uncomputed op({.transpose_a = true});
  CHECK_FALSE(static_cast<bool>(op.reference()));
  CHECK(op_cast<OpWith<MatMulOptions>>(op).options().transpose_a);
}

TEST_CASE("an op that names another class as its own is refused when its kernel is asked for") {
  CHECK_THROWS_WITH_AS(Impostor().reference(), doctest::Contains("'impostor_of_this_test'"), UserError);
}

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
