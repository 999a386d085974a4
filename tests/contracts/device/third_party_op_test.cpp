// An op from a third shared object, opened at run time, works like one of Plexaura's own.

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <functional>

#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "testing/check_gradients.h"
#include "testing/run.h"
#include "testing/values.h"
#include "tests/contracts/third_party_op/cube.h"
#include "tests/support/backend.h"

namespace plexaura::testing::third_party_op_test {

namespace {

using Builder = std::function<Node(const Node&, double)>;

Builder open_object() {
  static void* object = dlopen(PLEXAURA_THIRD_PARTY_OP, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(object != nullptr);
  const auto builder =
      reinterpret_cast<void (*)(const Node&, double, Node&)>(dlsym(object, "third_party_cube"));
  REQUIRE(static_cast<bool>(builder));
  return [builder](const Node& x, double offset) {
    Node y;
    builder(x, offset, y);
    return y;
  };
}

}  // namespace

TEST_CASE("an op from a third shared object computes, and its gradients are right") {
  const Builder cube = open_object();
  const GradientReport report = check_gradients(
      [&](Graph&, std::span<const Node> in) -> std::vector<Node> { return {cube(in[0] * in[1], 2)}; },
      {Random(1).tensor({DType::float64, {2, 3, 3, 2}}, -1, 1),
       Random(2).tensor({DType::float64, {2, 3, 3, 2}}, -1, 1)},
      test_backend());
  CHECK_MESSAGE(report.passed, to_string(report));
  CHECK(report.compared > 0);
}

TEST_CASE("such ops are merged only where every option is equal") {
  const Builder cube = open_object();
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  const std::vector<ProgramOutput> outputs{{.node = cube(x, 1) + cube(x, 1) + cube(x, 2)}};
  const auto program = compile(graph, outputs, test_backend());
  std::size_t cubes = 0;
  for (NodeId id = 0; id < program->graph->size(); ++id)
    cubes += program->graph->record(id).op->name() == "third_party_cube";
  CHECK(cubes == 2);
  VM vm(program, test_backend());
  vm.run({{"x", Tensor::of<float>({4}, {1, 2, 3, 4})}});
  CHECK(vm.output().to_doubles() == std::vector<double>{7, 28, 85, 196});
}

TEST_CASE("an op from a third shared object has its own class in every other one") {
  const Builder cube = open_object();
  Graph graph;
  const Op& op = *graph.record(cube(graph.input("x", {DType::float32, {4}}), 3).id()).op;
  CHECK(op_cast<OpWith<third_party::CubeOptions>>(op).options().offset == 3);
  CHECK_THROWS_AS(op_cast<MatMul>(op), UserError);
}

}  // namespace plexaura::testing::third_party_op_test
