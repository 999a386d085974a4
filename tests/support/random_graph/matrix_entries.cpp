// Kinds of nodes that are products and solutions of matrices.

#include "core/ops/attention.h"
#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/constants.h"
#include "core/ops/einsum.h"
#include "core/ops/linear_algebra.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "core/ops/vectors.h"
#include "tests/support/random_graph/sketch.h"

namespace plexaura::testing {

namespace {

std::int64_t last_of(const Node& node) { return node.shape()[node.shape().rank() - 1]; }

void add_matmul(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 4);
  const std::int64_t inner = last_of(a);
  const std::int64_t columns = sketch.from(1, 5);
  if (sketch.coin()) {
    const Node b = sketch.like({inner, columns});
    PLEXAURA_SKETCH(matmul(a, b) * 0.3, a, b);
  } else {
    const Node b = sketch.like({columns, inner});
    PLEXAURA_SKETCH(matmul(a, b, {.transpose_b = true}) * 0.3, a, b);
  }
}

void add_dense(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 2);
  const std::int64_t columns = sketch.from(1, 17);
  const Node b = sketch.leaf({last_of(a), columns});
  const Node bias = sketch.leaf({columns});
  PLEXAURA_SKETCH(relu(matmul(a, b) + bias) * 0.5, a, b, bias);
}

void add_batched_matmul(Sketch& sketch) {
  const Node a = sketch.of_rank(3, 3);
  const Node b = sketch.leaf({sketch.coin() ? a.shape()[0] : 1, a.shape()[1], sketch.from(1, 4)});
  PLEXAURA_SKETCH(matmul(a, b, {.transpose_a = true}) * 0.3, a, b);
}

void add_einsum(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 2);
  const Node b = sketch.leaf({a.shape()[1], sketch.from(1, 3), a.shape()[0]});
  PLEXAURA_SKETCH(einsum("ij,jki->kj", {a, b}) * 0.5, a, b);
  PLEXAURA_SKETCH(einsum("ij,jki->k", {a, b}) * 0.3, a, b);
  PLEXAURA_SKETCH(tensordot(a, b, 1) * 0.3, a, b);
}

void add_trace(Sketch& sketch) {
  const Node a = sketch.square_matrix();
  PLEXAURA_SKETCH(einsum("ii->i", {a}), a);
}

void add_vectors(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 1);
  const Node b = sketch.like(a.shape());
  PLEXAURA_SKETCH(dot(a, b) * 0.3, a, b);
  PLEXAURA_SKETCH(outer(a, b), a, b);
}

void add_cosine(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 3);
  const Node b = sketch.leaf(a.shape());
  PLEXAURA_SKETCH(cosine_similarity(exp(tanh(a)), b), a, b);
}

// Functions of a matrix that is positive definite.
void add_solutions(Sketch& sketch) {
  const Node a = sketch.square_matrix();
  Graph& graph = sketch.graph();
  const std::int64_t n = a.shape()[0];
  const DType dtype = sketch.dtype();
  const Graph& named = graph;
  const Node m = matmul(tanh(a), tanh(a), {.transpose_b = true}) * 0.3 + eye(graph, n, n, dtype);
  sketch.made(m, "matmul(tanh(a), tanh(a), {.transpose_b = true}) * 0.3 + eye(graph, n, n, dtype)",
              "a, graph, n, dtype", a, named, n, dtype);
  const Node b = sketch.leaf({n, 2});
  switch (sketch.below(6)) {
    case 0:
      return PLEXAURA_SKETCH(cholesky(m), m);
    case 1:
      return PLEXAURA_SKETCH(triangular_solve(m, b), m, b);
    case 2:
      return PLEXAURA_SKETCH(solve(m, b), m, b);
    case 3:
      return PLEXAURA_SKETCH(inverse(m), m);
    case 4:
      return PLEXAURA_SKETCH(det(m) * 0.3, m);
    default:
      return PLEXAURA_SKETCH(logdet(m), m);
  }
}

void add_attention(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 3);
  std::vector<std::int64_t> extents = a.shape().extents();
  extents[extents.size() - 2] = sketch.from(1, 4);
  const Node keys = sketch.like(Shape(extents));
  const Node values = sketch.like(Shape(extents));
  const bool causal = sketch.coin();
  PLEXAURA_SKETCH(scaled_dot_product_attention(a, keys, values, {.is_causal = causal}), a, keys, values,
                  causal);
  const Node mask = sketch.leaf({extents[extents.size() - 2]});
  PLEXAURA_SKETCH(scaled_dot_product_attention(a, keys, values, mask), a, keys, values, mask);
}

void add_rotary(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 3);
  const bool neighbours = sketch.coin();
  if (last_of(a) % 2 == 0) PLEXAURA_SKETCH(rotary(a, {.interleaved = neighbours}), a, neighbours);
}

}  // namespace

std::vector<SketchEntry> matrix_entries() {
  return {{add_matmul},    {add_matmul},    {add_dense},   {add_dense},  {add_batched_matmul},
          {add_einsum},    {add_trace},     {add_vectors}, {add_cosine}, {add_solutions},
          {add_solutions}, {add_attention}, {add_rotary}};
}

}  // namespace plexaura::testing
