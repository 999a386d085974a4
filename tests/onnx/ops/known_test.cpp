#include "onnx/ops/known.h"

#include <doctest/doctest.h>

#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"

namespace plexaura::onnx_known_test {

namespace {

Node filled(Graph& graph, std::int64_t rows, std::int64_t columns) {
  return broadcast_to(graph.constant(Tensor::scalar(1.0F)), Shape{rows, columns});
}

}  // namespace

TEST_CASE("values that depend only on constants are computed") {
  Graph graph;
  onnx::KnownValues known(graph);
  CHECK(known.compute(neg(graph.constant(Tensor::scalar(2.0F)) + 1)) == Tensor::scalar(-3.0F));
  CHECK(!known.compute(graph.input("x", {DType::float32, {1}}) + 1));
}

TEST_CASE("a value beyond the limit of bytes is not computed") {
  Graph graph;
  onnx::KnownValues known(graph, {.bytes_of_value = 64});
  CHECK(known.compute(filled(graph, 4, 4)));
  CHECK(!known.compute(filled(graph, 4, 5)));
}

TEST_CASE("a product of matrices is computed if it takes few operations") {
  Graph graph;
  onnx::KnownValues known(graph, {.operations = 20000});
  CHECK(known.compute(matmul(filled(graph, 8, 8), filled(graph, 8, 8))));
  CHECK(!known.compute(matmul(filled(graph, 16, 16), filled(graph, 16, 16))));
}

TEST_CASE("the first value that is computed has the limit of operations, too") {
  Graph graph;
  const Tensor ones = Tensor::of<float>({2, 2}, {1, 1, 1, 1});
  const Node product = matmul(graph.constant(ones), graph.constant(ones));
  onnx::KnownValues many(graph, {.operations = 32});
  CHECK(many.compute(product));
  onnx::KnownValues few(graph, {.operations = 31});
  CHECK(!few.compute(product));
}

TEST_CASE("all values together have a limit of bytes") {
  Graph graph;
  onnx::KnownValues known(graph, {.bytes = 10 * 64});
  int computed = 0;
  for (int i = 0; i < 20; ++i) {
    if (known.compute(filled(graph, 4, 4))) ++computed;
    known.forget();
  }
  CHECK(computed == 10);
}

TEST_CASE("a value is computed once for several values that depend on it") {
  Graph graph;
  onnx::KnownValues known(graph, {.bytes = 1000});
  const Node shared = filled(graph, 16, 8);
  int computed = 0;
  for (int i = 0; i < 10; ++i)
    if (known.compute(slice(shared, {.axis = 0, .start = i, .stop = i + 1}))) ++computed;
  CHECK(computed == 10);
}

}  // namespace plexaura::onnx_known_test
