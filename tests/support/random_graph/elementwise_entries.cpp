// Kinds of nodes that work element by element. Operands are kept within the domain of a function, away from its poles and,
// by odd numbers, away from its jumps.

#include "core/ops/activations.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/indexing.h"
#include "core/ops/logic.h"
#include "core/ops/random.h"
#include "core/ops/shared_dropout.h"
#include "core/ops/special_functions.h"
#include "core/ops/trigonometry.h"
#include "core/ops/unary.h"
#include "tests/support/random_graph/sketch.h"

#define PLEXAURA_SKETCH_UNARY(...)                    \
  {                                                   \
    [](Sketch& sketch) {                              \
      const Node a = sketch.any();                    \
      sketch.made(__VA_ARGS__, #__VA_ARGS__, "a", a); \
    }                                                 \
  }
#define PLEXAURA_SKETCH_BINARY(...)                         \
  {                                                         \
    [](Sketch& sketch) {                                    \
      const Node a = sketch.any();                          \
      const Node b = sketch.beside(a.shape());              \
      sketch.made(__VA_ARGS__, #__VA_ARGS__, "a, b", a, b); \
    }                                                       \
  }

namespace plexaura::testing {

namespace {

std::vector<SketchEntry> unary_entries() {
  return {
      PLEXAURA_SKETCH_UNARY(neg(a)),
      PLEXAURA_SKETCH_UNARY(abs(a)),
      PLEXAURA_SKETCH_UNARY(exp(tanh(a))),
      PLEXAURA_SKETCH_UNARY(log(square(a) + 0.4)),
      PLEXAURA_SKETCH_UNARY(sqrt(square(a) + 0.3)),
      PLEXAURA_SKETCH_UNARY(square(tanh(a))),
      PLEXAURA_SKETCH_UNARY(sigmoid(a)),
      PLEXAURA_SKETCH_UNARY(tanh(a)),
      PLEXAURA_SKETCH_UNARY(relu(a)),
      PLEXAURA_SKETCH_UNARY(softplus(a)),
      PLEXAURA_SKETCH_UNARY(erf(a)),
      PLEXAURA_SKETCH_UNARY(gelu(a)),
      PLEXAURA_SKETCH_UNARY(gelu(a, {.tanh = true})),
      PLEXAURA_SKETCH_UNARY(leaky_relu(a, 0.1)),
      PLEXAURA_SKETCH_UNARY(clip(a, -0.7, 0.6)),
      PLEXAURA_SKETCH_UNARY(sign(a + 0.0137) * a),
      PLEXAURA_SKETCH_UNARY(a * ceil(tanh(a) * 3 + 0.37) * 0.3),
      PLEXAURA_SKETCH_UNARY(a * floor(tanh(a) * 3 + 0.37) * 0.3),
      PLEXAURA_SKETCH_UNARY(a * round(tanh(a) * 3 + 0.37) * 0.3),
      PLEXAURA_SKETCH_UNARY(a * trunc(tanh(a) * 3 + 0.37) * 0.3),
      PLEXAURA_SKETCH_UNARY(cube(tanh(a))),
      PLEXAURA_SKETCH_UNARY(rsqrt(square(a) + 0.5)),
      PLEXAURA_SKETCH_UNARY(reciprocal(square(a) + 0.5)),
      PLEXAURA_SKETCH_UNARY(exp2(tanh(a))),
      PLEXAURA_SKETCH_UNARY(expm1(tanh(a))),
      PLEXAURA_SKETCH_UNARY(log2(square(a) + 0.4)),
      PLEXAURA_SKETCH_UNARY(log10(square(a) + 0.4)),
      PLEXAURA_SKETCH_UNARY(log1p(square(a))),
      PLEXAURA_SKETCH_UNARY(sin(a)),
      PLEXAURA_SKETCH_UNARY(cos(a)),
      PLEXAURA_SKETCH_UNARY(tan(tanh(a))),
      PLEXAURA_SKETCH_UNARY(asin(tanh(a) * 0.9)),
      PLEXAURA_SKETCH_UNARY(acos(tanh(a) * 0.9)),
      PLEXAURA_SKETCH_UNARY(atan(a)),
      PLEXAURA_SKETCH_UNARY(sinh(tanh(a))),
      PLEXAURA_SKETCH_UNARY(cosh(tanh(a))),
      PLEXAURA_SKETCH_UNARY(asinh(a)),
      PLEXAURA_SKETCH_UNARY(acosh(square(a) + 1.3)),
      PLEXAURA_SKETCH_UNARY(atanh(tanh(a) * 0.9)),
      PLEXAURA_SKETCH_UNARY(erfc(tanh(a))),
      PLEXAURA_SKETCH_UNARY(erfinv(tanh(a) * 0.9)),
      PLEXAURA_SKETCH_UNARY(lgamma(square(tanh(a)) + 0.4)),
      PLEXAURA_SKETCH_UNARY(digamma(square(tanh(a)) + 0.4) * 0.5),
      PLEXAURA_SKETCH_UNARY(polygamma(1, square(tanh(a)) + 0.6) * 0.3),
      PLEXAURA_SKETCH_UNARY(log_sigmoid(a)),
      PLEXAURA_SKETCH_UNARY(softsign(a)),
      PLEXAURA_SKETCH_UNARY(elu(a)),
      PLEXAURA_SKETCH_UNARY(celu(a, 0.7)),
      PLEXAURA_SKETCH_UNARY(selu(a)),
      PLEXAURA_SKETCH_UNARY(silu(a)),
      PLEXAURA_SKETCH_UNARY(mish(a)),
      PLEXAURA_SKETCH_UNARY(hard_sigmoid(a)),
      PLEXAURA_SKETCH_UNARY(hard_swish(a)),
      PLEXAURA_SKETCH_UNARY(hard_tanh(a)),
      PLEXAURA_SKETCH_UNARY(relu6(a)),
      PLEXAURA_SKETCH_UNARY(a * stop_gradient(sign(a + 0.0137))),
      PLEXAURA_SKETCH_UNARY(where(is_finite(a), a, 0.3)),
      PLEXAURA_SKETCH_UNARY(where(is_nan(a), 0.3, a)),
      PLEXAURA_SKETCH_UNARY(where(logical_not(gt(a, 0.1137)), a, 0.2)),
      PLEXAURA_SKETCH_UNARY(masked_fill(a, gt(a, 0.1137), 0.3)),
  };
}

std::vector<SketchEntry> binary_entries() {
  return {
      PLEXAURA_SKETCH_BINARY((a + b) * 0.5),
      PLEXAURA_SKETCH_BINARY(a - b),
      PLEXAURA_SKETCH_BINARY(tanh(a) * b),
      PLEXAURA_SKETCH_BINARY(a / (square(b) + 0.6)),
      PLEXAURA_SKETCH_BINARY(maximum(a, b)),
      PLEXAURA_SKETCH_BINARY(minimum(a, b)),
      PLEXAURA_SKETCH_BINARY(weighted_sum(a, 0.3, b, -0.6)),
      PLEXAURA_SKETCH_BINARY(pow(sigmoid(a) + 0.2, tanh(b))),
      PLEXAURA_SKETCH_BINARY(mul_no_nan(tanh(a), b)),
      PLEXAURA_SKETCH_BINARY(a * floor_div(tanh(a) + 0.37, square(b) + 1.13)),
      PLEXAURA_SKETCH_BINARY(mod(tanh(a) + 0.37, square(b) + 1.13)),
      PLEXAURA_SKETCH_BINARY(atan2(a, square(b) + 0.5)),
      PLEXAURA_SKETCH_BINARY(hypot(a, square(b) + 0.5)),
      PLEXAURA_SKETCH_BINARY(sigmoid_cross_entropy(a, sigmoid(b))),
      PLEXAURA_SKETCH_BINARY(where(gt(a, 0.1137), a, b)),
      PLEXAURA_SKETCH_BINARY(where(lt(b, 0.1137), a, b)),
      PLEXAURA_SKETCH_BINARY(where(logical_and(ge(a, 0.1137), le(b, 0.5137)), a, b)),
      PLEXAURA_SKETCH_BINARY(where(logical_or(gt(a, 0.1137), lt(b, 0.5137)), a, b * 0.5)),
      PLEXAURA_SKETCH_BINARY(where(logical_xor(gt(a, 0.1137), ne(b, 0.5137)), a * 0.5, b)),
      PLEXAURA_SKETCH_BINARY(where(eq(a, b), a, b * 0.5)),
  };
}

void add_bits(Sketch& sketch) {
  const Node a = sketch.any();
  const Node i = sketch.integers(a.shape(), 0, 16);
  PLEXAURA_SKETCH(where(eq(bitwise_and(bitwise_xor(i, 5), bitwise_or(i, 2)), 2), a * 0.5, a), a, i);
}

void add_shifted_bits(Sketch& sketch) {
  const Node a = sketch.any();
  const Node i = sketch.integers(a.shape(), 0, 16);
  PLEXAURA_SKETCH(where(gt(right_shift(left_shift(i, 1), 2), bitwise_not(i) + 7), a * 0.5, a), a, i);
}

void add_casts(Sketch& sketch) {
  const Node a = sketch.any();
  const DType dtype = sketch.dtype();
  PLEXAURA_SKETCH(cast(cast(a, DType::float64) * 1.5, dtype), a, dtype);
}

void add_prelu(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 4);
  const Node slope = sketch.like({a.shape()[1]});
  PLEXAURA_SKETCH(prelu(a, slope), a, slope);
}

void add_dropout(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  PLEXAURA_SKETCH(dropout(a, {.p = 0.3}), a);
}

void add_noise(Sketch& sketch) {
  const Node a = sketch.any();
  const Graph& graph = sketch.graph();
  Graph& to = sketch.graph();
  const bool batch = sketch.coin() && a.shape().rank() > 0;
  sketch.made(a * normal(to, a.type(), 0.5, 0.3, {.batch = batch}),
              "a * normal(graph, a.type(), 0.5, 0.3, {.batch = shared})", "a, graph, shared", a, graph,
              batch);
}

void add_uniform(Sketch& sketch) {
  const Node a = sketch.any();
  Graph& to = sketch.graph();
  const Graph& graph = to;
  sketch.made(a + uniform(to, a.type(), -0.3, 0.7, {.batch = false}),
              "a + uniform(graph, a.type(), -0.3, 0.7, {.batch = false})", "a, graph", a, graph);
}

}  // namespace

std::vector<SketchEntry> elementwise_entries() {
  std::vector<SketchEntry> all = unary_entries();
  for (const SketchEntry& entry : binary_entries()) all.insert(all.end(), 3, entry);
  for (const auto add :
       {add_bits, add_shifted_bits, add_casts, add_prelu, add_dropout, add_noise, add_uniform})
    all.push_back({add});
  return all;
}

}  // namespace plexaura::testing
